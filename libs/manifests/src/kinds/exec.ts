import { About, Fields } from '../shape/description.js';
import { Nested, Optional, Ruled } from '../shape/checked.js';
import { Duration, TextList, type TextForm } from '../shape/forms.js';
import { NodeSpec, type Kind } from './kind.js';

const ARGUMENT: TextForm = {
  code: 'bad-argument',
  problem: (text) => (text.includes('\0') ? 'must not contain NUL' : undefined),
  schema: { pattern: '^[^\\u0000]*$' },
};

const NO_PROGRAM = 'must be a program, but is empty';

/** A command, run without a shell. */
@Ruled({
  problems: ({ argv }) =>
    Array.isArray(argv) && argv[0] === '' ? [{ at: 'argv[0]', code: 'empty', message: NO_PROGRAM }] : [],
  schema: { properties: { argv: { items: [{ minLength: 1 }] } } },
  expressions: [{ rule: 'size(self.argv) == 0 || size(self.argv[0]) > 0', message: NO_PROGRAM, fieldPath: '.argv' }],
})
@Fields({ argv: 'The program and its arguments. There is no shell: use `[sh, -c, "…"]` for one.' })
export class Command {
  @TextList(ARGUMENT, 1) readonly argv!: readonly string[];
}

@About('A command that runs when a check command reports that it is needed.')
@Fields({
  check: 'Exits with 0 if nothing has to be done. Runs before and after `apply`, and when the node looks for drift.',
  apply: 'Runs if `check` fails. `check` must succeed afterwards.',
  undo: 'Runs when a change in which `apply` ran is rolled back. It may run more than once, and each time gets half of what is left of the lease, from 5 to 30 s. Without it, the rollback is reported with this exception.',
  timeout: 'How long each command may run, such as `30s`. Default: `5m`.',
})
export class ExecSpec extends NodeSpec {
  @Nested(() => Command) readonly check!: Command;
  @Nested(() => Command) readonly apply!: Command;
  @Optional() @Nested(() => Command) readonly undo?: Command;
  @Optional() @Duration() readonly timeout?: string;
}

export const exec: Kind = { name: 'Exec', spec: ExecSpec, role: 'state' };
