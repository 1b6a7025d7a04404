import type { Config, ConfigEntry } from '#libs/contracts';
import { wordsFor } from '#libs/manifests/lean';
import type { PathKeys } from '../../ports.js';
import { inTheWay } from './parent.js';

/** The kind whose paths are followed to the end. */
export const DIRECTORY = 'Directory';
const LINK = 'Link';
const KINDS = ['File', LINK, DIRECTORY];

/**
 * Refuses an entry of this kind at a path where the config in force has another kind, if the change or its rollback
 * would have to remove one fragment before it can create the other.
 */
export function assertKindStays(kind: string, path: string, aliases: PathKeys, from: Config): void {
  const key = aliases.key(path, kind === DIRECTORY);
  for (const { entry, at } of ownersOf(from, aliases)) {
    const what = whyNot(kind, key, entry, at);
    if (what === undefined) continue;
    throw inTheWay(
      `${path} ${what}. What is at a path cannot change its kind in one change: delete ${wordsFor(entry)} first, and add this fragment in another change`,
    );
  }
}

function whyNot(kind: string, key: string, entry: ConfigEntry, at: string): string | undefined {
  const place = String(entry.spec['path']);
  if (entry.kind !== DIRECTORY && key.startsWith(`${at}/`))
    return `needs a folder at ${place}, which is a ${entry.kind} until now`;
  if (kind !== DIRECTORY && at.startsWith(`${key}/`)) return `is a folder until now, with ${place} in it`;
  if (at !== key) return undefined;
  if (kind === DIRECTORY && entry.kind === LINK)
    return 'is a Link until now, and the directory would be created where it leads';
  if (kind === LINK && entry.kind === DIRECTORY)
    return 'is a Directory until now, and a rollback could not put it back in place of the link';
  return undefined;
}

/** An entry that owns a path, and its key. */
interface Owner {
  readonly entry: ConfigEntry;
  readonly at: string;
}

/** Each entry of a change asks for them. */
const OWNERS = new WeakMap<Config, readonly Owner[]>();

function ownersOf(config: Config, aliases: PathKeys): readonly Owner[] {
  const known = OWNERS.get(config);
  if (known !== undefined) return known;
  const owners = config.fragments
    .filter(({ kind }) => KINDS.includes(kind))
    .map((entry) => ({ entry, at: aliases.key(entry.spec['path'], entry.kind === DIRECTORY) }));
  OWNERS.set(config, owners);
  return owners;
}
