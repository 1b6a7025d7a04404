import { Optional } from '../shape/checked.js';
import { Text } from '../shape/forms.js';
import { NODE_PATH } from '../path.js';
import { MODE } from './file.js';
import { SelectingSpec, type Kind } from './kind.js';

/** A directory that shall be there. */
export class DirectorySpec extends SelectingSpec {
  @Text(NODE_PATH) readonly path!: string;
  @Optional() @Text(MODE) readonly mode?: string;
}

export const directory: Kind = {
  name: 'Directory',
  spec: DirectorySpec,
  role: 'state',
  ownsPath: true,
  reservedNames: [],
};
