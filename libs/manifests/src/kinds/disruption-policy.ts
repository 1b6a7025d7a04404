import { About, Fields } from '../shape/description.js';
import { ACTION_KINDS, type ActionKind } from '#libs/contracts';
import { Nested, NestedList, Optional, Ruled, type Problem } from '../shape/checked.js';
import { Text, Word } from '../shape/forms.js';
import { NETWORK_KINDS, type NetworkKind } from '../network/fragments.js';
import { RULE_PATH } from '../path.js';
import { SYSCTL_PREFIX } from './sysctl.js';
import { UNIT } from '../unit-name.js';
import { SelectingSpec, type Kind } from './kind.js';

const WITH_UNIT = ['reload', 'restart'];
/** More than people write by hand. */
const MAX_RULES = 1_000;
const MAX_ACTIONS = 32;

/** What a change needs on the node. */
@Ruled({
  problems: unitProblems,
  schema: {
    oneOf: [
      { properties: { kind: { enum: WITH_UNIT } }, required: ['unit'] },
      { properties: { kind: { enum: ACTION_KINDS.filter((kind) => !WITH_UNIT.includes(kind)) }, unit: false } },
    ],
  },
  expressions: [
    {
      rule: `!(self.kind in [${WITH_UNIT.map((kind) => `'${kind}'`).join(', ')}]) || has(self.unit)`,
      message: `${WITH_UNIT.join(' and ')} need a unit`,
      fieldPath: '.unit',
    },
    {
      rule: `self.kind in [${WITH_UNIT.map((kind) => `'${kind}'`).join(', ')}] || !has(self.unit)`,
      message: `only ${WITH_UNIT.join(' and ')} take a unit`,
      fieldPath: '.unit',
    },
  ],
})
@Fields({
  kind: '`none`, `daemon-reload`, `reload` or `restart` a unit, `drain` the node, or `reboot` it.',
  unit: 'Unit to reload or restart, such as `frr.service`. Required for these two, forbidden for the others.',
})
export class ActionSpec {
  @Word(ACTION_KINDS, 'unknown-action') readonly kind!: ActionKind;
  @Optional() @Text(UNIT) readonly unit?: string;
}

/** The actions for a path and everything below it. */
@Fields({
  path: 'Absolute path of a file or directory. The rule also covers everything below it; the longest path that matches wins.',
  actions: 'What a change needs. `none` next to other actions has no effect; `reboot` replaces all but `drain`.',
})
export class FileRule {
  @Text(RULE_PATH) readonly path!: string;
  @NestedList(() => ActionSpec, MAX_ACTIONS) readonly actions!: readonly ActionSpec[];
}

/** The actions for a unit. */
@Fields({
  name: 'Name of the unit, such as `chronyd.service`.',
  actions: 'What a change needs. `none` next to other actions has no effect; `reboot` replaces all but `drain`.',
})
export class UnitRule {
  @Text(UNIT) readonly name!: string;
  @NestedList(() => ActionSpec, MAX_ACTIONS) readonly actions!: readonly ActionSpec[];
}

/** The actions for SSH keys. */
@Fields({
  actions: 'What a change needs. `none` next to other actions has no effect; `reboot` replaces all but `drain`.',
})
export class SshKeysRule {
  @NestedList(() => ActionSpec, MAX_ACTIONS) readonly actions!: readonly ActionSpec[];
}

/** The actions for a kernel parameter, or for all with this prefix: `net.ipv4` also matches `net.ipv4.ip_forward`. */
@Fields({
  key: 'Name of a kernel parameter, or the start of one: `net.ipv4` also covers `net.ipv4.ip_forward`. The longest match wins.',
  actions: 'What a change needs. `none` next to other actions has no effect; `reboot` replaces all but `drain`.',
})
export class SysctlRule {
  @Text(SYSCTL_PREFIX) readonly key!: string;
  @NestedList(() => ActionSpec, MAX_ACTIONS) readonly actions!: readonly ActionSpec[];
}

/** The actions for all fragments of a network kind. */
@Fields({
  kind: 'Network kind that the rule applies to.',
  actions: 'What a change needs. `none` next to other actions has no effect; `reboot` replaces all but `drain`.',
})
export class NetworkRule {
  @Word(NETWORK_KINDS, 'unknown-kind') readonly kind!: NetworkKind;
  @NestedList(() => ActionSpec, MAX_ACTIONS) readonly actions!: readonly ActionSpec[];
}

/** The actions that changes need. */
@About('Which changes need which actions on a node, such as reloading a unit, draining or rebooting.')
@Fields({
  default: "Actions for changes that no rule matches. Default: the kind's own.",
  files: 'Actions for files and directories, by path.',
  units: 'Actions for systemd units, by name.',
  sshKeys: 'Actions for SSH keys.',
  sysctl: 'Actions for kernel parameters, by name.',
  network: 'Actions for network kinds.',
})
export class DisruptionPolicySpec extends SelectingSpec {
  @Optional() @NestedList(() => ActionSpec, MAX_ACTIONS) readonly default?: readonly ActionSpec[];
  @Optional() @NestedList(() => FileRule, MAX_RULES) readonly files?: readonly FileRule[];
  @Optional() @NestedList(() => UnitRule, MAX_RULES) readonly units?: readonly UnitRule[];
  @Optional() @Nested(() => SshKeysRule) readonly sshKeys?: SshKeysRule;
  @Optional() @NestedList(() => SysctlRule, MAX_RULES) readonly sysctl?: readonly SysctlRule[];
  @Optional() @NestedList(() => NetworkRule, MAX_RULES) readonly network?: readonly NetworkRule[];
}

export const disruptionPolicy: Kind = { name: 'DisruptionPolicy', spec: DisruptionPolicySpec, role: 'policy' };

function unitProblems(action: Readonly<Record<string, unknown>>): readonly Problem[] {
  const needsUnit = WITH_UNIT.includes(action['kind'] as string);
  if (needsUnit && action['unit'] === undefined)
    return [{ at: 'unit', code: 'required', message: `${String(action['kind'])} needs a unit` }];
  const isKnown = ACTION_KINDS.includes(action['kind'] as ActionKind);
  if (isKnown && !needsUnit && action['unit'] !== undefined) {
    return [{ at: 'unit', code: 'forbidden', message: `${String(action['kind'])} takes no unit` }];
  }
  return [];
}
