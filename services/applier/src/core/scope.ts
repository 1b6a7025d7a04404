import { fragmentId, type Config, type ConfigEntry, type LeaseView } from '#libs/contracts';
import type { Scope } from './journal.js';
import { notAmong } from './plan.js';
import type { Item, Kinds } from './ports.js';
import { inHand, type State } from './state.js';

/** The scope of a lease, as far as the configs tell. */
export function scopeOf(state: State, lease: LeaseView, to: Config): Scope {
  const { journal, settings } = state;
  const { kinds } = settings;
  const from = inHand(state, journal.inForce);
  if (from === undefined || !journal.sound) return { touched: undefined, aside: {} };
  const [before, after] = [kinds.entries(from), kinds.entries(to)];
  const differing = [...before.filter(notAmong(after)), ...after.filter(notAmong(before))];
  // An action may break the unit that it restarts.
  const units = new Set(lease.actions.map(({ unit }) => unit));
  const acted = after.filter(({ kind, spec }) => kind === 'SystemdUnit' && units.has(String(spec['name'])));
  return { touched: idsOf([...differing, ...acted], kinds), aside: {} };
}

/** The scope once these drifted entries are repaired as well. */
export const withDrift = ({ touched, aside }: Scope, drifted: readonly ConfigEntry[], kinds: Kinds): Scope => ({
  touched: touched && [...new Set([...touched, ...idsOf(drifted, kinds)])],
  aside,
});

/** The scope without these entries, which stay as they are. */
export const withAside = (
  { touched, aside }: Scope,
  left: readonly { readonly entry: ConfigEntry; readonly reason: string }[],
  kinds: Kinds,
): Scope => ({
  touched,
  aside: {
    ...Object.fromEntries(left.flatMap(({ entry, reason }) => idsOf([entry], kinds).map((id) => [id, reason]))),
    ...aside,
  },
});

export const isTouched = ({ touched }: Scope, entry: ConfigEntry, kinds: Kinds): boolean =>
  touched === undefined || idsOf([entry], kinds).some((id) => setOf(touched).has(id));

export const isAside = ({ aside }: Scope, entry: ConfigEntry, kinds: Kinds): boolean =>
  idsOf([entry], kinds).some((id) => id in aside);

/**
 * The items that are a part of the lease. What depends on other entries, as a unit does on its files, is always a part,
 * because the lease may change it.
 */
export function itemsIn(items: readonly Item[], scope: Scope, kinds: Kinds): readonly Item[] {
  const known = WITHIN.get(items);
  if (known?.scope === scope) return known.within;
  const isWithin = (item: Item): boolean => {
    // A lease must not forget what existed before Sluice.
    if (item.do === 'restore') return !(item.key in scope.aside);
    if (isAside(scope, item.entry, kinds)) return false;
    return !kinds.independent.includes(item.entry.kind) || isTouched(scope, item.entry, kinds);
  };
  const within = items.filter(isWithin);
  WITHIN.set(items, { scope, within });
  return within;
}

/** For the report of a change that was applied. */
export const asideText = ({ aside }: Scope): readonly string[] => {
  const reasons = [...new Set(Object.values(aside))];
  return reasons.length === 0 ? [] : [`left as it is: ${reasons.slice(0, 5).join('; ')}`];
};

/** Every step needs all items, and asks for the same ones. */
const WITHIN = new WeakMap<readonly Item[], { readonly scope: Scope; readonly within: readonly Item[] }>();
const SETS = new WeakMap<readonly string[], ReadonlySet<string>>();

const idsOf = (entries: readonly ConfigEntry[], kinds: Kinds): readonly string[] =>
  entries.flatMap((entry) => {
    const keys = kinds.resources(entry);
    return keys.length === 0 ? [fragmentId(entry)] : keys;
  });

function setOf(keys: readonly string[]): ReadonlySet<string> {
  const set = SETS.get(keys) ?? new Set(keys);
  SETS.set(keys, set);
  return set;
}
