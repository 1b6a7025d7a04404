import { fragmentId, type Action, type Fragment } from '#libs/contracts';
import { normalPath, selectorOf, selects, type DisruptionPolicySpec } from '#libs/manifests';
import { ordered } from './action-order.js';

/** Actions, and the rule that asks for them. */
export interface Ruling {
  readonly rule: string;
  readonly actions: readonly Action[];
}

/** What all disruption policies that select a node come to; for people to see as much as for planning. */
export interface EffectivePolicy {
  /** For what no other rule matches; undefined when no policy has one. */
  readonly default: Ruling | undefined;
  /** By normalised path; one rule for each. */
  readonly files: readonly (Ruling & { readonly path: string })[];
  readonly units: readonly (Ruling & { readonly name: string })[];
  readonly sshKeys: Ruling | undefined;
}

/** The policy where there is none: every kind's own default counts. */
export const NO_POLICY: EffectivePolicy = { default: undefined, files: [], units: [], sshKeys: undefined };

/** Merges the disruption policies that select a node: what several say about the same thing is all done. */
export function effectivePolicy(policies: Iterable<Fragment>, labels: Readonly<Record<string, string>>): EffectivePolicy {
  const selecting = [...policies]
    .filter((policy) => policy.kind === 'DisruptionPolicy' && selects(selectorOf(policy), labels))
    .map((policy) => ({ id: fragmentId(policy), spec: policy.spec as unknown as DisruptionPolicySpec }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const rulings = { default: new Map<string, Ruling>(), files: new Map<string, Ruling>(), units: new Map<string, Ruling>(), sshKeys: new Map<string, Ruling>() };
  for (const { id, spec } of selecting) {
    if (spec.default !== undefined) add(rulings.default, '', { rule: `${id} default`, actions: spec.default });
    for (const { path, actions } of spec.files ?? []) add(rulings.files, normalPath(path), { rule: `${id} files ${path}`, actions });
    for (const { name, actions } of spec.units ?? []) add(rulings.units, name, { rule: `${id} units ${name}`, actions });
    if (spec.sshKeys !== undefined) add(rulings.sshKeys, '', { rule: `${id} sshKeys`, actions: spec.sshKeys.actions });
  }
  return {
    default: rulings.default.get(''),
    files: sorted(rulings.files).map(([path, ruling]) => ({ path, ...ruling })),
    units: sorted(rulings.units).map(([name, ruling]) => ({ name, ...ruling })),
    sshKeys: rulings.sshKeys.get(''),
  };
}

function add(rulings: Map<string, Ruling>, key: string, ruling: Ruling): void {
  const known = rulings.get(key);
  const actions = ordered([...(known?.actions ?? []), ...ruling.actions]);
  rulings.set(key, { rule: known === undefined ? ruling.rule : `${known.rule}, ${ruling.rule}`, actions });
}

const sorted = (rulings: ReadonlyMap<string, Ruling>): readonly (readonly [string, Ruling])[] =>
  [...rulings].sort(([a], [b]) => (a < b ? -1 : 1));
