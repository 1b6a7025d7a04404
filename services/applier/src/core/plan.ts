import type { Config, ConfigEntry } from '#libs/contracts';
import { objectRefOf } from '#libs/manifests/lean';
import type { Originals } from './journal.js';
import type { Item, Kinds } from './ports.js';

/**
 * The items that bring the node to a config from any state. First, every resource with an original that this config
 * does not manage is restored, deepest path first. Then every entry is applied, shallowest path first within its kind.
 * Backends skip what is already correct, so this list also serves to continue after a crash, repair drift and roll
 * back.
 */
export const planTo = oncePerConfig((config, originals, kinds) => {
  const managed = new Set(kinds.entries(config).flatMap((entry) => kinds.resources(entry)));
  const strays = Object.keys(originals)
    .filter((key) => !managed.has(key))
    .sort()
    .reverse();
  const restores = strays.flatMap((key): Item[] => {
    const original = originals[key];
    if (original === undefined) return [];
    return [
      { do: 'restore', key, original: { ...original, made: original.made.filter((made) => !managed.has(made)) } },
    ];
  });
  return [...restores, ...inOrder(config, kinds).map((entry): Item => ({ do: 'apply', entry }))];
});

/** The same without Exec, which does not run during a rollback. */
export const rollbackTo = oncePerConfig((config, originals, kinds) =>
  planTo(config, originals, kinds).filter((item) => item.do === 'restore' || kinds.resources(item.entry).length > 0),
);

/** Selects the entries that are not among these, which means that none has the same kind, name and spec. */
export function notAmong(entries: readonly ConfigEntry[]): (entry: ConfigEntry) => boolean {
  const textOf = ({ kind, name, spec }: ConfigEntry): string => JSON.stringify([kind, name, spec]);
  const texts = new Set(entries.map(textOf));
  return (entry) => !texts.has(textOf(entry));
}

/**
 * The items of a rollback. What the change touched becomes what it was before, including drift. Everything else is
 * applied as in the config.
 */
export function rollbackItems(
  config: Config,
  originals: Originals,
  before: Originals | undefined,
  kinds: Kinds,
): readonly Item[] {
  const all = rollbackTo(config, originals, kinds);
  if (before === undefined) return all;
  const cached = ROLLBACKS.get(before);
  if (cached?.all === all) return cached.items;
  const items = all.flatMap((item) => (item.do === 'restore' ? [item] : backTo(item, before, kinds)));
  ROLLBACKS.set(before, { all, items });
  return items;
}

/** Every step needs all items. */
const ROLLBACKS = new WeakMap<Originals, { readonly all: readonly Item[]; readonly items: readonly Item[] }>();

function backTo(item: Item & { readonly do: 'apply' }, before: Originals, kinds: Kinds): readonly Item[] {
  const cached = kinds.resources(item.entry).flatMap((key) => {
    const original = before[key];
    return original === undefined ? [] : [{ key, original }];
  });
  // In the order of planTo: a unit is stopped before its files are restored, and started after that.
  const restores = cached
    .sort((a, b) => compareText(b.key, a.key))
    .map(({ key, original }): Item => ({ do: 'restore', key, original }));
  const isWhole = cached.length > 0 && cached.every(({ original }) => original.entryFirst !== true);
  return isWhole ? restores : [item, ...restores];
}

/**
 * Caches the list per config: every step needs all items, and with thousands of files, computing them each time would
 * take minutes.
 */
function oncePerConfig(
  plan: (config: Config, originals: Originals, kinds: Kinds) => readonly Item[],
): (config: Config, originals: Originals, kinds: Kinds) => readonly Item[] {
  const planned = new WeakMap<Kinds, WeakMap<Originals, WeakMap<Config, readonly Item[]>>>();
  return (config, originals, kinds) => {
    const ofKinds = planned.get(kinds) ?? new WeakMap<Originals, WeakMap<Config, readonly Item[]>>();
    planned.set(kinds, ofKinds);
    const ofOriginals = ofKinds.get(originals) ?? new WeakMap<Config, readonly Item[]>();
    ofKinds.set(originals, ofOriginals);
    const items = ofOriginals.get(config) ?? plan(config, originals, kinds);
    ofOriginals.set(config, items);
    return items;
  };
}

/** The items that the kernel has lost since the machine rebooted. */
export const forgottenOf = (items: readonly Item[], kinds: Kinds): readonly Item[] =>
  items.filter((item) => item.do === 'apply' && kinds.forgotten.includes(item.entry.kind));

/** The entries that change the node, in the order in which they are applied. */
export function inOrder(config: Config, kinds: Kinds): readonly ConfigEntry[] {
  const key = (entry: ConfigEntry): string => kinds.resources(entry)[0] ?? entry.name;
  return kinds
    .entries(config)
    .filter((entry) => kinds.order.includes(entry.kind))
    .sort((a, b) => kinds.order.indexOf(a.kind) - kinds.order.indexOf(b.kind) || compareText(key(a), key(b)));
}

/** The originals that are still needed once the node has this config. */
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

/** The entries whose content is in the object store. */
export const entriesWithObject = (config: Config): readonly ConfigEntry[] =>
  config.fragments.filter((entry) => objectRefOf(entry) !== undefined);

export const probesOf = (config: Config): readonly ConfigEntry[] =>
  config.fragments.filter((entry) => entry.kind === 'Probe');

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
