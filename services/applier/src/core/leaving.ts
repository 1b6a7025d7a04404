import { fragmentId, type Config } from '#libs/contracts';
import type { Journal, Leaving, LeavingResources, Originals } from './journal.js';
import type { Item, Kinds } from './ports.js';
import type { State } from './state.js';

/** Of a resource whose deletion nobody has seen yet. */
const NOT_SEEN = 'nobody has looked yet whether it is gone';

/** The originals, with the names of the entries that manage them, because a report names what is left of an entry. */
export function namedOriginals(originals: Originals, configs: readonly Config[], kinds: Kinds): Originals {
  const { doneByOthers = [] } = kinds;
  if (doneByOthers.length === 0) return originals;
  const names = new Map(
    configs.flatMap((config) =>
      kinds.entries(config).flatMap((entry) => kinds.resources(entry).map((key) => [key, fragmentId(entry)] as const)),
    ),
  );
  return Object.fromEntries(
    Object.entries(originals).map(([key, original]) => {
      const of = names.get(key) ?? original.of;
      return [key, of === undefined || !doneByOthers.includes(original.kind) ? original : { ...original, of }];
    }),
  );
}

/**
 * What Sluice has deleted, or given back, and what was still there when that was last looked at. A resource that nobody
 * has looked at counts as still there.
 */
export function leavingIn({ journal, memory, settings }: State, { originals }: Journal): LeavingResources {
  const { doneByOthers = [] } = settings.kinds;
  const { leftToOthers } = memory.progress;
  const seen = memory.drift.left;
  const before = Object.entries(journal.leaving ?? {}).flatMap(([key, one]): [string, Leaving][] => {
    if (seen !== undefined && !Object.hasOwn(seen, key)) return [];
    return [[key, { ...one, how: seen?.[key] ?? one.how }]];
  });
  // Every step of an idle applier asks.
  const former = originals === journal.originals ? {} : journal.originals;
  const dropped = Object.entries(former).flatMap(([key, one]): [string, Leaving][] => {
    if (Object.hasOwn(originals, key) || !doneByOthers.includes(one.kind)) return [];
    const { left } = leftToOthers ?? {};
    if (left !== undefined && !Object.hasOwn(left, key)) return [];
    return [[key, { ...one, how: left?.[key] ?? NOT_SEEN }]];
  });
  return Object.fromEntries([...before, ...dropped].filter(([key]) => !Object.hasOwn(originals, key)));
}

/** What a drift check looks at. */
export const leavingItems = ({ leaving = {} }: Journal): readonly Item[] =>
  Object.entries(leaving).map(([key, original]): Item => ({ do: 'restore', key, original }));

/** For a report: of each fragment, what of it is still there, and why. */
export function leftoversOf(leaving: LeavingResources): readonly string[] {
  const all = Object.entries(leaving).map(([key, { of, how }]) => `${of ?? key.slice(key.indexOf(':') + 1)}: ${how}`);
  return [...Map.groupBy(all, (text) => text.slice(0, text.indexOf(': '))).values()].map(([first = '', ...more]) =>
    more.length === 0 ? first : `${first}; and ${more.length} more of it`,
  );
}
