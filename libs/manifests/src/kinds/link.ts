import { About, Fields } from '../shape/description.js';
import { Text, type TextForm } from '../shape/forms.js';
import { FILE_PATH } from '../path.js';
import { NodeSpec, type Kind } from './kind.js';

/** The longest target of a link that Linux supports. */
const MAX_TARGET = 4095;

const nul = (text: string): string | undefined => (text.includes('\0') ? 'must not contain NUL' : undefined);

/** The form of a target: any text, because the target need not exist. */
const TARGET: TextForm = {
  code: 'bad-target',
  problem: (text) =>
    nul(text) ??
    (text === '' ? 'must not be empty' : undefined) ??
    (text.length > MAX_TARGET ? `must not be longer than ${MAX_TARGET} characters` : undefined),
  anyway: nul,
  schema: { minLength: 1, maxLength: MAX_TARGET, pattern: '^[^\\u0000]*$' },
};

/** A symbolic link. */
@About('A symbolic link.')
@Fields({
  path: 'Absolute path of the link on the node. Missing parent directories are created. Only one object may use a path on a node.',
  target: 'What it points to: an absolute path, or one that starts from the directory of the link. It need not exist.',
})
export class LinkSpec extends NodeSpec {
  @Text(FILE_PATH) readonly path!: string;
  @Text(TARGET) readonly target!: string;
}

export const link: Kind = { name: 'Link', spec: LinkSpec, role: 'state', ownsPath: true };
