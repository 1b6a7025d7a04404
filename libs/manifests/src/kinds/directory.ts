import { About, Fields } from '../shape/description.js';
import { Optional } from '../shape/checked.js';
import { Text } from '../shape/forms.js';
import { NODE_PATH } from '../path.js';
import { MODE, OWNER } from './file.js';
import { NodeSpec, type Kind } from './kind.js';

/** A directory that must exist. */
@About('A directory with its permissions.')
@Fields({
  path: 'Absolute path of the directory on the node. A symbolic link to a directory is followed. Missing parent directories are created. Only one object may use a path on a node.',
  mode: 'Permissions in octal, in quotes. If left out, an existing directory keeps its permissions, and a new one gets `"0755"`.',
  owner:
    'User that owns the directory: a name that the node knows, or a number in quotes. If left out, an existing directory keeps its owner, and a new one belongs to the user of the applier; inside a directory of another user, to that user.',
  group: 'Group of the directory, like `owner`.',
})
export class DirectorySpec extends NodeSpec {
  @Text(NODE_PATH) readonly path!: string;
  @Optional() @Text(MODE) readonly mode?: string;
  @Optional() @Text(OWNER) readonly owner?: string;
  @Optional() @Text(OWNER) readonly group?: string;
}

export const directory: Kind = { name: 'Directory', spec: DirectorySpec, role: 'state', ownsPath: true };
