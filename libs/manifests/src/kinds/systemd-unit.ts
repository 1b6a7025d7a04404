import { About, Fields } from '../shape/description.js';
import { AtLeastOne, NestedList, Optional } from '../shape/checked.js';
import { Flag, Text, Word } from '../shape/forms.js';
import { DROP_IN, UNIT_FOLDER, WHOLE_UNIT } from '../unit-name.js';
import { NodeSpec, type Kind } from './kind.js';

const UNIT_STATES = ['started', 'stopped'] as const;
const SAYS = ['content', 'dropIns', 'enabled', 'state'] as const;

/** A file that adds to a unit or overrides parts of it. */
@Fields({
  name: 'File name of the drop-in, ending with `.conf`.',
  content: 'The whole content of the drop-in. May contain templates.',
})
export class DropIn {
  @Text(DROP_IN) readonly name!: string;
  @Text() readonly content!: string;
}

/**
 * A systemd unit: its file, its drop-ins, whether it starts at boot, and whether it runs. Omitted fields are left
 * unchanged.
 */
@AtLeastOne(SAYS, `needs at least one of ${SAYS.join(', ')}`, 'empty')
@About(
  'A systemd unit: its file, its drop-ins, whether it starts at boot, and whether it runs. Fields that are left out stay as they are on the node.',
)
@Fields({
  name: 'Name of the unit with its suffix, such as `exporter.service`. Only one object may manage a unit on a node.',
  content: 'The whole unit file. May contain templates. Leave it out for a unit that a package installs.',
  dropIns: 'Files that extend the unit or override parts of it.',
  enabled: 'Whether the unit starts at boot.',
  state: 'Whether the unit runs now: `started` or `stopped`.',
})
export class SystemdUnitSpec extends NodeSpec {
  @Text(WHOLE_UNIT) readonly name!: string;
  @Optional() @Text() readonly content?: string;
  @Optional() @NestedList(() => DropIn) readonly dropIns?: readonly DropIn[];
  @Optional() @Flag() readonly enabled?: boolean;
  @Optional() @Word(UNIT_STATES) readonly state?: (typeof UNIT_STATES)[number];
}

/** The path of a unit's main file. */
const unitPath = (unit: string): string => `${UNIT_FOLDER}/${unit}`;
/** The path of one of its drop-ins. */
const dropInPath = (unit: string, dropIn: string): string => `${UNIT_FOLDER}/${unit}.d/${dropIn}`;

export const systemdUnit: Kind = { name: 'SystemdUnit', spec: SystemdUnitSpec, role: 'state', claims };

function claims({ name, content, dropIns }: Readonly<Record<string, unknown>>): readonly string[] {
  if (typeof name !== 'string') return [];
  const names = Array.isArray(dropIns)
    ? dropIns.flatMap((dropIn: Partial<DropIn> | null) => (typeof dropIn?.name === 'string' ? [dropIn.name] : []))
    : [];
  return [
    `unit ${name}`,
    ...(content === undefined ? [] : [unitPath(name)]),
    ...names.map((dropIn) => dropInPath(name, dropIn)),
  ];
}
