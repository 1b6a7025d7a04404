import type { Config, ConfigEntry } from '#libs/contracts';
import type { Originals } from './journal.js';
import type { Item, Kinds } from './ports.js';

/**
 * The way to a config, from wherever the node is: whatever Sluice holds an original of and this config does not manage
 * is put back, deepest first; then every entry is applied, shallowest first within its kind. Backends leave alone what is
 * as it shall be, so going on after a crash, repairing drift and going back are all this one list.
 */
export function wayTo(config: Config, originals: Originals, kinds: Kinds): readonly Item[] {
  const managed = new Set(kinds.entries(config).flatMap((entry) => kinds.resources(entry)));
  const strays = Object.keys(originals)
    .filter((key) => !managed.has(key))
    .sort()
    .reverse();
  const putBacks = strays.flatMap((key): Item[] => {
    const original = originals[key];
    if (original === undefined) return [];
    return [
      { do: 'put-back', key, original: { ...original, made: original.made.filter((made) => !managed.has(made)) } },
    ];
  });
  return [...putBacks, ...inOrder(config, kinds).map((entry): Item => ({ do: 'apply', entry }))];
}

/** The same, without what cannot be undone: an Exec is not run on the way back. */
export const wayBackTo = (config: Config, originals: Originals, kinds: Kinds): readonly Item[] =>
  wayTo(config, originals, kinds).filter((item) => item.do === 'put-back' || kinds.resources(item.entry).length > 0);

/** Of a way, what the kernel has forgotten since the machine was restarted. */
export const forgottenOf = (items: readonly Item[], kinds: Kinds): readonly Item[] =>
  items.filter((item) => item.do === 'apply' && kinds.forgotten.includes(item.entry.kind));

/** The entries that make something, in the order in which they are applied. */
export function inOrder(config: Config, kinds: Kinds): readonly ConfigEntry[] {
  const key = (entry: ConfigEntry): string => kinds.resources(entry)[0] ?? entry.name;
  return kinds
    .entries(config)
    .filter((entry) => kinds.order.includes(entry.kind))
    .sort((a, b) => kinds.order.indexOf(a.kind) - kinds.order.indexOf(b.kind) || compareText(key(a), key(b)));
}

/** Originals that a config still needs once the node is on it. */
export function stillManaged(originals: Originals, config: Config, kinds: Kinds): Originals {
  const managed = new Set(kinds.entries(config).flatMap((entry) => kinds.resources(entry)));
  return Object.fromEntries(Object.entries(originals).filter(([key]) => managed.has(key)));
}

/** The first resource that two entries of a config both claim. */
export function claimedTwice(config: Config, kinds: Kinds): string | undefined {
  const owners = new Map<string, string>();
  for (const entry of kinds.entries(config)) {
    const id = `${entry.kind}/${entry.name}`;
    for (const key of kinds.resources(entry)) {
      const other = owners.get(key);
      if (other !== undefined) return `${other} and ${id} both manage ${key}`;
      owners.set(key, id);
    }
  }
  return undefined;
}

export const probesOf = (config: Config): readonly ConfigEntry[] =>
  config.fragments.filter((entry) => entry.kind === 'Probe');

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
