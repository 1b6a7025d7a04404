import { TextList, type TextForm } from './shape/forms.js';

const ARGUMENT: TextForm = {
  code: 'bad-argument',
  problem: (text) => (text.includes('\0') ? 'must not contain NUL' : undefined),
  schema: { pattern: '^[^\\u0000]*$' },
};

/** A command, run without a shell. */
export class Command {
  @TextList(ARGUMENT, 1) readonly argv!: readonly string[];
}
