import { CUT, isDriftOf, isRestOfDrift, ordered, type Action, type Config, type ConfigEntry } from '#libs/contracts';
import { isNetworkEntry } from '#libs/manifests';
import type { EffectivePolicy } from './effective-policy.js';
import { placeOf, rulingOf } from './kind-rules.js';

/**
 * Plans the actions that a node needs because a lease to `to` also corrects what has drifted from `from`: the same as
 * if a change had touched these places. Places that differ between the two configs are planned by `planActions`.
 */
export function planDriftActions(
  from: Config,
  to: Config,
  drift: readonly string[],
  policy: EffectivePolicy,
): readonly Action[] {
  if (drift.length === 0) return [];
  const places = { from: placesIn(from.fragments), to: placesIn(to.fragments) };
  const entries = new Set(drift.flatMap((difference) => entriesOf(difference, to, places)));
  return ordered([...entries].flatMap((entry) => rulingOf(entry.kind, placeOf(entry), policy).actions));
}

/** Entries by their places, as differences name them. */
export type Places = ReadonlyMap<string, readonly ConfigEntry[]>;

export const placesIn = (entries: readonly ConfigEntry[]): Places => Map.groupBy(entries, placeOf);

/** The entries of `to` that a difference may be about. If in doubt, more: nobody notices a missing action. */
function entriesOf(
  difference: string,
  to: Config,
  places: { readonly from: Places; readonly to: Places },
): readonly ConfigEntry[] {
  if (isRestOfDrift(difference)) return to.fragments;
  const entries = namedIn(difference, places.to);
  if (entries.length > 0 || namedIn(difference, places.from).length > 0) return entries;
  // Network fragments are merged, and the elements of the network have their own names.
  const network = to.fragments.filter(isNetworkEntry);
  return network.length > 0 ? network : to.fragments;
}

/** The entries whose place a difference names. Only a text that was cut is compared with all places: there are many. */
export function namedIn(difference: string, places: Places): readonly ConfigEntry[] {
  if (difference.endsWith(CUT))
    return [...places].flatMap(([place, some]) => (isDriftOf(difference, place) ? some : []));
  const entries: ConfigEntry[] = [];
  for (let end = difference.indexOf(': '); end >= 0; end = difference.indexOf(': ', end + 1))
    entries.push(...(places.get(difference.slice(0, end)) ?? []));
  return entries;
}
