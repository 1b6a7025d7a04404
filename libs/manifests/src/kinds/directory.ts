import { About, Fields } from '../shape/description.js';
import { Optional } from '../shape/checked.js';
import { Text } from '../shape/forms.js';
import { NODE_PATH } from '../path.js';
import { MODE } from './file.js';
import { SelectingSpec, type Kind } from './kind.js';

/** A directory that must exist. */
@About('A directory with its permissions.')
@Fields({
  path: 'Absolute path of the directory on the node. Missing parent directories are created. Only one object may use a path on a node.',
  mode: 'Permissions in octal, in quotes. Default: `"0755"`.',
})
export class DirectorySpec extends SelectingSpec {
  @Text(NODE_PATH) readonly path!: string;
  @Optional() @Text(MODE) readonly mode?: string;
}

export const directory: Kind = { name: 'Directory', spec: DirectorySpec, role: 'state', ownsPath: true };
