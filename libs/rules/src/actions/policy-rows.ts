import type { Action } from '#libs/contracts';
import { KINDS, NETWORK_KINDS } from '#libs/manifests';
import type { EffectivePolicy, Ruling } from './effective-policy.js';
import { rulingOf } from './kind-rules.js';

/** One rule that applies to a node. */
export interface PolicyRow {
  /** The field of the policy that contains it, or `kind` for the default of a kind. */
  readonly target: 'files' | 'units' | 'sshKeys' | 'sysctl' | 'network' | 'default' | 'kind';
  /** The path, unit, key or kind that it applies to; empty for all. */
  readonly match: string;
  readonly actions: readonly Action[];
  readonly rule: string;
  /** The names of its policies. */
  readonly policies: readonly string[];
}

/** Every rule of an effective policy, most specific first, as planning uses them. For people. */
export function policyRows(policy: EffectivePolicy): readonly PolicyRow[] {
  const row = (target: PolicyRow['target'], match: string, { actions, rule, policies }: Ruling): PolicyRow => ({
    target,
    match,
    actions,
    rule,
    policies,
  });
  return [
    ...policy.files.map((rule) => row('files', rule.path, rule)),
    ...policy.units.map((rule) => row('units', rule.name, rule)),
    ...(policy.sshKeys === undefined ? [] : [row('sshKeys', '', policy.sshKeys)]),
    ...policy.sysctl.map((rule) => row('sysctl', rule.key, rule)),
    ...policy.network.map((rule) => row('network', rule.kind, rule)),
    ...(policy.default === undefined ? [] : [row('default', '', policy.default)]),
    ...STATE_KINDS.map((kind) => row('kind', kind, rulingOf(kind, UNIT_ITSELF, unnamed(policy)))),
  ];
}

/** The placeholder for the unit that changes. */
const UNIT_ITSELF = '<unit>';
const STATE_KINDS: readonly string[] = [
  ...new Set([...KINDS.filter(({ role }) => role === 'state').map(({ name }) => name), ...NETWORK_KINDS]),
].sort();

/** The actions for a kind if no rule matches the place. */
const unnamed = (policy: EffectivePolicy): EffectivePolicy => ({ ...policy, files: [], units: [], sysctl: [] });
