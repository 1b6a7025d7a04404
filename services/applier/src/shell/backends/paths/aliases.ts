import { readdirSync } from 'node:fs';
import { aliasWords, throughAliases, type PathAliases } from '#libs/contracts';
import type { Originals } from '../../../core/index.js';
import type { PathKeys } from '../../ports.js';
import { normalized, wayTo } from './rooted-path.js';

/** Where distributions have links to folders, such as `/bin` and `/var/run`. Others are found when a path uses them. */
const SEARCHED = ['/', '/usr', '/var'];
const MOST_ALIASES = 64;

/** Links to folders on this node, as it announces them. They are looked for once, so that keys stay the same. */
export class Aliases implements PathKeys {
  private constructor(private readonly links: PathAliases) {}

  static async of(root: string): Promise<Aliases> {
    const links = new Map<string, string>();
    for (const folder of SEARCHED)
      for (const path of linksIn(root, folder)) {
        const real = await folderOf(root, path);
        if (real !== undefined && real !== path && links.size < MOST_ALIASES) links.set(path, real);
      }
    return new Aliases(links);
  }

  /** As capabilities, such as `path:/bin=/usr/bin`. */
  get words(): readonly string[] {
    return aliasWords(this.links);
  }

  /** The key of the resource that a path leads to; `follow`: also from a link at its end. */
  key(path: unknown, follow = false): string {
    return keyOf(throughAliases(normalized(path), this.links, follow));
  }

  /** The same originals by these keys: a folder may have become a link since they were saved. */
  rekeyed(originals: Originals): Originals {
    const keyOfOriginal = (key: string): string => (isPathKey(key) ? this.key(pathOfKey(key)) : key);
    const entries = Object.entries(originals);
    if (entries.every(([key]) => keyOfOriginal(key) === key)) return originals;
    // What has such a key already counts.
    const kept = entries.filter(([key]) => keyOfOriginal(key) === key || originals[keyOfOriginal(key)] === undefined);
    return Object.fromEntries(kept.map(([key, original]) => [keyOfOriginal(key), original]));
  }
}

export const PATH_PREFIX = 'path:';
export const keyOf = (path: string): string => PATH_PREFIX + path;
export const pathOfKey = (key: string): string => key.slice(PATH_PREFIX.length);
const isPathKey = (key: string): boolean => key.startsWith(PATH_PREFIX);

function linksIn(root: string, folder: string): readonly string[] {
  try {
    return readdirSync(`${root}${folder}`, { withFileTypes: true })
      .filter((entry) => entry.isSymbolicLink())
      .map(({ name }) => normalized(`${folder}/${name}`))
      .sort();
  } catch {
    return [];
  }
}

/** The folder that a link leads to; undefined where it leads to none, or must not be followed. */
async function folderOf(root: string, link: string): Promise<string | undefined> {
  try {
    const way = await wayTo(root, `${link}/x`);
    if ('missing' in way) return undefined;
    way.parent.close();
    return way.parent.folderPath;
  } catch {
    return undefined;
  }
}
