import { readdirSync } from 'node:fs';
import { aliasWords, throughAliases, type PathAliases } from '#libs/contracts';
import type { Originals } from '../../../core/index.js';
import type { PathKeys } from '../../ports.js';
import { normalized, resolvePath } from './rooted-path.js';

/**
 * Folders in which distributions have links to folders, such as `/bin` and `/var/run`. Other links are found when a
 * path uses them.
 */
const SEARCHED = ['/', '/usr', '/var'];
const MOST_ALIASES = 64;

/** Links to folders on this node, as it announces them. They are searched only once, so that keys stay the same. */
export class Aliases implements PathKeys {
  private constructor(
    private readonly root: string,
    private readonly links: PathAliases,
  ) {}

  static async of(root: string): Promise<Aliases> {
    const links = new Map<string, string>();
    for (const folder of SEARCHED)
      for (const path of linksIn(root, folder)) {
        const real = await folderOf(root, path);
        if (real !== undefined && real !== path && links.size < MOST_ALIASES) links.set(path, real);
      }
    return new Aliases(root, links);
  }

  /** As capabilities, such as `path:/bin=/usr/bin`. */
  get words(): readonly string[] {
    return aliasWords(this.links);
  }

  /** The key of the resource that a path leads to. With `follow`, a link at the end of the path is followed too. */
  key(path: unknown, follow = false): string {
    return keyOf(throughAliases(normalized(path), this.links, follow));
  }

  async moved(path: unknown): Promise<string | undefined> {
    for (const [link, real] of this.links) {
      // Other links may lead to a file system that does not answer.
      if (!normalized(path).startsWith(`${link}/`)) continue;
      const now = await folderOf(this.root, link);
      const leads = now === undefined || now === link ? 'is not a link to a folder' : `leads to ${now}`;
      if (now !== real)
        return `${link} ${leads}, but led to ${real} when the applier started: restart the applier, or undo that`;
    }
    return undefined;
  }

  /** The same originals with current keys: a folder may have become a link since they were saved. */
  rekeyed(originals: Originals): Originals {
    const keyOfOriginal = (key: string): string => (isPathKey(key) ? this.key(pathOfKey(key)) : key);
    const entries = Object.entries(originals);
    if (entries.every(([key]) => keyOfOriginal(key) === key)) return originals;
    // An existing original with such a key takes precedence.
    const chosen = entries.filter(([key]) => keyOfOriginal(key) === key || originals[keyOfOriginal(key)] === undefined);
    return Object.fromEntries(chosen.map(([key, original]) => [keyOfOriginal(key), original]));
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

/** The folder that a link leads to. Undefined if it is not a folder, or the link must not be followed. */
async function folderOf(root: string, link: string): Promise<string | undefined> {
  try {
    const way = await resolvePath(root, `${link}/x`);
    if ('missing' in way) return undefined;
    way.parent.close();
    return way.parent.folderPath;
  } catch {
    return undefined;
  }
}
