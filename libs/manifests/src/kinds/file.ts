import { About, Fields } from '../shape/description.js';
import { Optional } from '../shape/checked.js';
import { patternForm, Text } from '../shape/forms.js';
import { FILE_PATH } from '../path.js';
import { SelectingSpec, type Kind } from './kind.js';

/** The form of a file's permissions. */
export const MODE = patternForm('bad-mode', /^[0-7]{3,4}$/, 'must be an octal mode such as "0644"');

/** A file with a content. */
@About('A file with its content and permissions.')
@Fields({
  path: 'Absolute path of the file on the node. Missing parent directories are created. Only one object may use a path on a node.',
  content: 'The whole content. May contain templates such as `{{ node.name }}` and `{{ node.labels.zone }}`.',
  mode: 'Permissions in octal, in quotes. Default: `"0644"`.',
})
export class FileSpec extends SelectingSpec {
  @Text(FILE_PATH) readonly path!: string;
  @Text() readonly content!: string;
  @Optional() @Text(MODE) readonly mode?: string;
}

export const file: Kind = { name: 'File', spec: FileSpec, role: 'state', ownsPath: true };
