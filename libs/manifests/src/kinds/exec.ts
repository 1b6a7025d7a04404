import { Nested, Optional } from '../shape/checked.js';
import { Duration } from '../shape/forms.js';
import { Command } from '../command.js';
import { SelectingSpec, type Kind } from './kind.js';

/** A command that is run where another one says that it is needed. */
export class ExecSpec extends SelectingSpec {
  @Nested(() => Command) readonly check!: Command;
  @Nested(() => Command) readonly apply!: Command;
  @Optional() @Duration() readonly timeout?: string;
}

export const exec: Kind = { name: 'Exec', spec: ExecSpec, role: 'state', ownsPath: false, reservedNames: [] };
