import type { Action } from '#libs/contracts';
import { KINDS, NETWORK_KINDS } from '#libs/manifests';
import type { EffectivePolicy, Ruling } from './effective-policy.js';
import { rulingOf } from './kind-rules.js';

/** One rule that holds for a node. */
export interface PolicyRow {
  /** The word of the policy under which it stands, or `kind` for what holds where no policy says anything. */
  readonly target: 'files' | 'units' | 'sshKeys' | 'sysctl' | 'network' | 'default' | 'kind';
  /** The path, unit, key or kind that it is for; empty for all of its target. */
  readonly match: string;
  readonly actions: readonly Action[];
  readonly rule: string;
  /** Names of the policies that it comes from. */
  readonly policies: readonly string[];
}

/** Every rule that holds under an effective policy, the nearest first: what planning goes by, for people to see. */
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

/** How the unit that changes is named where no certain one is meant. */
const UNIT_ITSELF = '<unit>';
const STATE_KINDS: readonly string[] = [
  ...new Set([...KINDS.filter(({ role }) => role === 'state').map(({ name }) => name), ...NETWORK_KINDS]),
].sort();

/** What is left for a kind when no rule names the place. */
const unnamed = (policy: EffectivePolicy): EffectivePolicy => ({ ...policy, files: [], units: [], sysctl: [] });
