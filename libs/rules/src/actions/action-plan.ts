import { ordered, type Action, type Config, type ConfigEntry } from '#libs/contracts';
import { canonicalJson } from '../rendering/canonical-json.js';
import { changedEntries, isEqual } from './changed-entries.js';
import type { EffectivePolicy } from './effective-policy.js';
import { normalSpec, placeOf, rulingOf } from './kind-rules.js';

/** Why an action is in a plan: what changes, which rule matched, and which actions that rule requires. */
export interface ActionReason {
  readonly what: string;
  readonly rule: string;
  readonly actions: readonly Action[];
}

/** What a change from one config to another needs on the node. */
export interface ActionPlan {
  /** In the order in which they are taken; empty when nothing changes. */
  readonly actions: readonly Action[];
  readonly because: readonly ActionReason[];
  /** What differs: paths, units, kernel parameters, or `Kind/name` for other fragments. Sorted. */
  readonly changed: readonly string[];
}

/** Plans the actions that a change from one config to another needs under a policy. */
export function planActions(from: Config, to: Config, policy: EffectivePolicy): ActionPlan {
  const parts = differences(from, to);
  const because = parts.flatMap(({ what, shown, kinds }) =>
    kinds.map((kind) => {
      const { rule, actions } = rulingOf(kind, what, policy);
      return { what: shown, rule, actions };
    }),
  );
  return {
    actions: ordered([...new Set(because.map(({ actions }) => actions))].flat()),
    because,
    changed: [...new Set(parts.map(({ shown }) => shown))].sort(),
  };
}

interface Part {
  readonly what: string;
  /** For people: the fragment that became it, or `what`. */
  readonly shown: string;
  /** Every kind at this place, before or after. */
  readonly kinds: readonly string[];
}

/** Compares by place: only the content counts, not which fragment it comes from. */
function differences(from: Config, to: Config): readonly Part[] {
  const entries = changedEntries(from.fragments, to.fragments);
  const before: ReadonlyMap<string, Place> = Map.groupBy(entries.before, placeOf);
  const after: ReadonlyMap<string, Place> = Map.groupBy(entries.after, placeOf);
  const whats = [...new Set([...before.keys(), ...after.keys()])].filter(
    (what) => !isSamePlace(what, before.get(what), after.get(what)),
  );
  return whats.sort().map((what) => {
    const both = [...(before.get(what) ?? []), ...(after.get(what) ?? [])];
    const shown = both.find(({ origin }) => origin !== undefined)?.origin ?? what;
    return { what, shown, kinds: [...new Set(both.map(({ kind }) => kind))].sort() };
  });
}

/** The review rejects two fragments at one place. If it happens anyway, the place contains both. */
type Place = readonly ConfigEntry[];

function isSamePlace(what: string, before: Place = [], after: Place = []): boolean {
  if (before.length !== after.length) return false;
  const [one, other] = [before[0], after[0]];
  if (before.length === 1 && one !== undefined && other !== undefined)
    return one.kind === other.kind && isEqual(normalSpec(one, what), normalSpec(other, what));
  return textOf(what, before) === textOf(what, after);
}

const textOf = (what: string, place: Place): string =>
  place
    .map((entry) => canonicalJson([entry.kind, normalSpec(entry, what)]))
    .sort()
    .join('\n');
