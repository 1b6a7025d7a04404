import { isDeepStrictEqual } from 'node:util';
import type { Json, Original, Originals } from '../../../core/index.js';
import { RefusedError, type Surroundings } from '../../ports.js';
import { sha256 } from '../../state/original-store.js';
import {
  attributesDiffer,
  clearTemporary,
  fileAt,
  putDirectory,
  putLink,
  remove,
  restoreFile,
  type Attributes,
  type Owner,
  type PathRead,
} from './path-state.js';
import { keyOf, PATH_PREFIX, pathOfKey } from './aliases.js';

/** What a path was, as the journal keeps it. */
type PathOriginal = { readonly state: 'absent' } | PresentOriginal;
type PresentOriginal = Home &
  (
    | ({ readonly state: 'file'; readonly digest?: string } & Attributes)
    | ({ readonly state: 'symlink'; readonly target: string } & Owner)
    | ({ readonly state: 'directory' } & Attributes)
  );

/** The folder that it was saved from, as `device:inode`, which says something only in that boot. */
interface Home {
  readonly folder?: string;
  readonly bootId?: string;
}

/**
 * Originals of paths, whatever kind of fragment manages them: File and Directory share this, and may follow one another
 * at a path.
 */
export class PathOriginals {
  /** Of resources that have their originals already, by the place where they lead. */
  private readonly places = new WeakMap<Originals, Promise<ReadonlyMap<string, string>>>();

  constructor(
    private readonly kind: string,
    private readonly surroundings: Surroundings,
    /** A link at the path itself is followed. */
    private readonly follow = false,
  ) {}

  async read(key: string, known: Originals): Promise<Original> {
    const read = await this.look(key);
    const { now, place } = read;
    const other = (await this.placesOf(known)).get(place);
    if (other !== undefined && other !== key)
      throw new RefusedError(
        'node',
        `leads to the same place as ${pathOfKey(other)}, which is managed by that path: use that path, or delete the fragment first`,
      );
    // A folder that another managed path brought with it goes when the last path in it goes.
    const broughtAlong = new Set(Object.values(known).flatMap(({ made }) => made));
    const made = [
      ...now.above.map(keyOf).filter((above) => broughtAlong.has(above)),
      ...(now.state === 'absent' ? now.missing.map(keyOf) : []),
    ];
    const was = await this.originalOf(read, true);
    return { kind: this.kind, was: { ...was, ...(was.state === 'absent' ? {} : this.homeOf(read)) } as Json, made };
  }

  /** As it is before a lease. With `entryFirst`, without the content, which the entry has. */
  async snapshot(key: string, entryFirst: boolean): Promise<Original> {
    const read = await this.look(key);
    // Without its home: the rollback may have to make the folder again, and what it puts into it comes in any order.
    const was = (await this.originalOf(read, !entryFirst)) as unknown as Json;
    const made = read.now.state === 'absent' ? read.now.missing.map(keyOf) : [];
    return { kind: this.kind, was, made, ...(entryFirst ? { entryFirst } : {}) };
  }

  async restore(key: string, original: Original): Promise<void> {
    const { root } = this.surroundings;
    const path = pathOfKey(key);
    const was = original.was as unknown as PathOriginal;
    if ((await this.differs(key, original.was)) !== undefined) await this.put(path, was);
    // It may be as it was, and still have the temporary file of a killed process next to it.
    if (was.state === 'absent') await remove(root, path, this.follow);
    else await clearTemporary(root, path, this.follow);
    for (const made of original.made.toSorted().reverse()) await remove(root, pathOfKey(made));
  }

  async differs(key: string, json: Json): Promise<string | undefined> {
    const was = json as unknown as PathOriginal;
    const { now, content, extra } = await this.look(key, was.state === 'file' && was.digest !== undefined);
    // A directory that others put something into stays: nobody's files are removed with it.
    if (was.state === 'absent' && now.state === 'directory') return undefined;
    if (was.state !== now.state) return `is ${now.state}, but was ${was.state} before`;
    if (was.state === 'symlink' && now.state === 'symlink') {
      if (was.target !== now.target) return `points to ${now.target}, but pointed to ${was.target} before`;
      return attributesDiffer({ ...now, mode: 0 }, { uid: was.uid, gid: was.gid });
    }
    if (!('mode' in was) || !('mode' in now)) return undefined;
    if (was.state === 'file' && was.digest !== undefined && (content === undefined || sha256(content) !== was.digest))
      return 'content differs from before';
    return attributesDiffer(now, was) ?? extraDiffers(was, extra);
  }

  private look(key: string, withContent = true): Promise<PathRead> {
    const { root } = this.surroundings;
    return fileAt(root, pathOfKey(key), { wants: () => withContent, full: true, follow: this.follow });
  }

  private placesOf(known: Originals): Promise<ReadonlyMap<string, string>> {
    const found = this.places.get(known) ?? this.findPlaces(known);
    this.places.set(known, found);
    return found;
  }

  private async findPlaces(known: Originals): Promise<ReadonlyMap<string, string>> {
    const places = new Map<string, string>();
    for (const [key, { kind }] of Object.entries(known)) {
      if (!key.startsWith(PATH_PREFIX)) continue;
      const follow = kind === DIRECTORY;
      // One that cannot be reached now leads nowhere.
      const read = await fileAt(this.surroundings.root, pathOfKey(key), { follow }).catch(() => undefined);
      if (read !== undefined) places.set(read.place, key);
    }
    return places;
  }

  private async put(path: string, was: PathOriginal): Promise<void> {
    const { root, contents, bootId } = this.surroundings;
    if (was.state === 'absent') return remove(root, path, this.follow);
    const options = { folder: was.bootId === bootId ? was.folder : undefined, follow: this.follow };
    if (was.state === 'symlink') return putLink(root, path, was.target, was, options);
    if (was.state === 'directory') return putDirectory(root, path, attributesOf(was), options);
    const content = was.digest === undefined ? undefined : await contents.content(was.digest);
    await restoreFile(root, path, content, attributesOf(was), options);
  }

  private homeOf({ parent }: PathRead): Home {
    return parent === undefined ? {} : { folder: parent.identity, bootId: this.surroundings.bootId };
  }

  /** Without the folder that it is saved from. */
  private async originalOf({ now, content, extra }: PathRead, withContent: boolean): Promise<PathOriginal> {
    if (now.state === 'absent') return { state: 'absent' };
    if (now.state === 'other') throw new RefusedError('node', 'is neither a file, a directory nor a symbolic link');
    const { uid, gid } = now;
    const { contents } = this.surroundings;
    const kept = { uid, gid, ...extra };
    switch (now.state) {
      case 'file': {
        const digest = withContent ? { digest: await contents.keep(content as Buffer) } : {};
        return { ...kept, state: 'file', mode: now.mode, ...digest };
      }
      case 'symlink':
        return { ...kept, state: 'symlink', target: now.target };
      case 'directory':
        return { ...kept, state: 'directory', mode: now.mode };
    }
  }
}

/** The kind whose paths are followed to the end. */
export const DIRECTORY = 'Directory';

const attributesOf = ({ mode, uid, gid, xattrs, modified }: Attributes): Attributes => ({
  mode,
  uid,
  gid,
  ...(xattrs === undefined ? {} : { xattrs }),
  ...(modified === undefined ? {} : { modified }),
});

/** What is known of only one of them cannot be compared. */
function extraDiffers(was: Attributes, now: PathRead['extra']): string | undefined {
  if (was.xattrs !== undefined && now?.xattrs !== undefined && !isDeepStrictEqual({ ...was.xattrs }, { ...now.xattrs }))
    return 'extended attributes or ACLs differ from before';
  return was.modified !== undefined && now?.modified !== undefined && was.modified !== now.modified
    ? 'the time of its last change differs from before'
    : undefined;
}
