import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Json, Original, Originals } from '../../../core/index.js';
import { RefusedError, type CheckContext, type SaveContext, type Surroundings } from '../../ports.js';
import { digestOf } from '../../content.js';
import type { OpenFile } from '../../open-file.js';
import { removeLeftovers, putDirectory, putLink, remove, restoreFile } from './path-changes.js';
import { DIRECTORY } from './kind-change.js';
import { sharedText } from './path-check.js';
import { attributesDiffer } from './path-differences.js';
import {
  fileAt,
  assertReplaceable,
  isMountPoint,
  mounted,
  pathStateAt,
  type Attributes,
  type FileState,
  type LinkTarget,
  type Owner,
  type PathRead,
} from './path-state.js';
import { keyOf, PATH_PREFIX, pathOfKey } from './aliases.js';

/** What existed at a path, as it is stored in the journal. */
type PathOriginal = SavedFolder &
  /** `linked`: a link at the path leads to where nothing was. */
  (
    | { readonly state: 'absent'; readonly linked?: true }
    /** With the size and sha256 of its content, if that was saved. */
    | ({ readonly state: 'file'; readonly digest?: string; readonly size?: number } & Attributes)
    | ({ readonly state: 'symlink' } & LinkTarget & Owner)
    /** With its `device:inode`. */
    | ({ readonly state: 'directory'; readonly identity?: string } & Attributes)
  );

/**
 * The folder to which the path led when the original was saved, as `device:inode`. Left out if the folder did not
 * exist. These numbers are only valid until the next boot.
 */
interface SavedFolder {
  readonly folder?: string;
  readonly bootId?: string;
}

/**
 * Originals of paths, for all kinds that manage paths: File and Directory share this, and one may replace the other at
 * a path.
 */
export class PathOriginals {
  /** For resources that already have originals: their keys, by the place to which they lead. */
  private readonly places = new WeakMap<Originals, Promise<ReadonlyMap<string, string>>>();

  constructor(
    private readonly kind: string,
    private readonly surroundings: Surroundings,
    /** Whether a link at the path itself is followed. */
    private readonly follow = false,
  ) {}

  async read(key: string, { originals, managed, leftMs }: SaveContext): Promise<Original> {
    const read = await this.look(key, this.keeping(leftMs));
    const { now, place } = read;
    const other = (await this.placesOf(originals)).get(place);
    if (other !== undefined && other !== key)
      throw new RefusedError(
        'node',
        `leads to the same place as ${pathOfKey(other)}, which is managed by that path: use that path, or delete the fragment first`,
      );
    // A folder that was created for another managed path is removed when the last path in it is removed.
    const broughtAlong = new Set(Object.values(originals).flatMap(({ made }) => made));
    const made = [
      ...now.above.map(keyOf).filter((above) => broughtAlong.has(above)),
      ...(now.state === 'absent' ? now.missing.map(keyOf) : []),
    ];
    // Sluice itself may remove such a folder, and create it again.
    const folder = keyOf(now.above.at(-1) ?? '/');
    const isOwnFolder = managed.has(folder) || broughtAlong.has(folder);
    const home = now.state === 'absent' && isOwnFolder ? {} : this.homeOf(read);
    return { kind: this.kind, was: { ...(await this.withLink(key, read)), ...home } as Json, made };
  }

  /** Its state before a lease. With `entryFirst`, without the content, which the entry has. */
  async snapshot(key: string, entryFirst: boolean, leftMs: () => number): Promise<Original> {
    const read = await this.look(key, entryFirst ? undefined : this.keeping(leftMs));
    // Without its home: the rollback may have to create the folder again, and restores its files in any order.
    const was = (await this.withLink(key, read)) as unknown as Json;
    const made = read.now.state === 'absent' ? read.now.missing.map(keyOf) : [];
    return { kind: this.kind, was, made, ...(entryFirst ? { entryFirst } : {}) };
  }

  /**
   * A link that was made later can join two folders, so that two paths lead to one place. What existed before at this
   * path cannot be restored then.
   */
  async whyShared(key: string, { was }: Original, checked: CheckContext): Promise<string | undefined> {
    const { taken, places } = checked;
    const path = pathOfKey(key);
    const { root } = this.surroundings;
    const read = await fileAt(root, path, { follow: this.follow }).catch(() => undefined);
    if (read?.parent === undefined) return undefined;
    const { link, parent } = read;
    await this.assertNoMount(key, was, checked);
    await this.assertUnprotected(key, was, read);
    const isOther = parent.realPath !== path && taken.has(keyOf(parent.realPath));
    const other = places.get(read.place) ?? (isOther ? { path: parent.realPath, link } : undefined);
    if (other === undefined || other.path === path) return undefined;
    const text = sharedText(path, link, other);
    if ((was as unknown as PathOriginal).state === 'absent') return text;
    throw new RefusedError('node', `what was there before cannot be restored: ${text}: remove the link first`);
  }

  /** Throws Refused if `chattr`, or a read-only mount, prevents what the restore would do. */
  private async assertUnprotected(key: string, was: Json, { now }: PathRead): Promise<void> {
    const { state } = was as unknown as PathOriginal;
    try {
      await assertReplaceable(this.surroundings.root, pathOfKey(key), this.follow);
    } catch (error) {
      const isRestored = state === 'absent' ? now.state === state : (await this.differs(key, was)) === undefined;
      if (!isRestored) throw error;
    }
  }

  /** The attributes of a mounted directory can be restored, but nothing else can be put in its place. */
  private async assertNoMount(key: string, json: Json, { from }: CheckContext): Promise<void> {
    const { state } = json as unknown as PathOriginal;
    const { aliases, root } = this.surroundings;
    const path = pathOfKey(key);
    if (state === 'directory' || !(await isMountPoint(root, path, this.follow))) return;
    if (state !== 'absent' && (await this.differs(key, json)) === undefined) return;
    const own = from.fragments.find(({ spec }) => aliases.key(spec['path'], this.follow) === key);
    const what =
      own === undefined ? 'what was there before cannot be restored' : `${own.kind}/${own.name} cannot be deleted`;
    throw mounted(path, `${what}: unmount it first`);
  }

  async restore(key: string, original: Original): Promise<void> {
    const { root } = this.surroundings;
    const path = pathOfKey(key);
    const was = original.was as unknown as PathOriginal;
    if (was.state === 'absent' || (await this.differs(key, original.was)) !== undefined) await this.put(path, was);
    // What a killed process left may still be next to it.
    else await removeLeftovers(root, path, this.follow);
    for (const made of original.made.toSorted().reverse()) await remove(root, pathOfKey(made), { onlyDirectory: true });
  }

  async differs(key: string, json: Json): Promise<string | undefined> {
    const was = json as unknown as PathOriginal;
    const size = was.state === 'file' ? was.size : undefined;
    const isOfSize = (file: FileState): boolean => file.size === size;
    const { now, digest, extra } = await this.look(key, size === undefined ? undefined : digestOf, isOfSize);
    // A directory stays if others put something into it, so that their files are not removed.
    if (was.state === 'absent' && now.state === 'directory') return undefined;
    if (was.state !== now.state) return `is ${now.state}, but was ${was.state} before`;
    if (was.state === 'symlink' && now.state === 'symlink') {
      if (was.target !== now.target || was.bytes !== now.bytes)
        return `points to ${now.target}, but pointed to ${was.target} before`;
      return attributesDiffer({ ...now, mode: 0 }, { uid: was.uid, gid: was.gid });
    }
    if (!('mode' in was) || !('mode' in now)) return undefined;
    if (was.state === 'file' && was.digest !== undefined && digest !== was.digest) return 'content differs from before';
    return attributesDiffer(now, was) ?? extraDiffers(was, extra);
  }

  /** Reads what exists now. `digestFrom` reads the digest of a file that is wanted. */
  private async look(
    key: string,
    digestFrom?: (file: OpenFile) => Promise<string>,
    wants: (file: FileState) => boolean = () => true,
  ): Promise<OriginalReading> {
    const { root } = this.surroundings;
    const options = digestFrom === undefined ? {} : { wants, reads: digestFrom };
    const { content: digest, ...read } = await fileAt<string>(root, pathOfKey(key), {
      ...options,
      full: true,
      follow: this.follow,
    });
    return digest === undefined ? read : { ...read, digest };
  }

  /** Stores the content of a file. */
  private keeping(leftMs: () => number): (file: OpenFile) => Promise<string> {
    return (file) => this.surroundings.contents.keep(file, leftMs);
  }

  private placesOf(originals: Originals): Promise<ReadonlyMap<string, string>> {
    const result = this.places.get(originals) ?? this.findPlaces(originals);
    this.places.set(originals, result);
    return result;
  }

  private async findPlaces(originals: Originals): Promise<ReadonlyMap<string, string>> {
    const places = new Map<string, string>();
    const paths = Object.entries(originals).filter(([key]) => key.startsWith(PATH_PREFIX));
    const { fileSystems } = this.surroundings;
    await fileSystems.tryAll(paths.map(([key]) => dirname(pathOfKey(key))));
    for (const [key, { kind }] of paths) {
      if (!(await fileSystems.answers(dirname(pathOfKey(key))))) continue;
      const follow = kind === DIRECTORY;
      // A path that cannot be resolved now leads nowhere.
      const read = await fileAt(this.surroundings.root, pathOfKey(key), { follow }).catch(() => undefined);
      if (read !== undefined) places.set(read.place, key);
    }
    return places;
  }

  private async put(path: string, was: PathOriginal): Promise<void> {
    const { root, contents, bootId } = this.surroundings;
    const isSameBoot = was.bootId === bootId;
    const options = { folder: isSameBoot ? was.folder : undefined, follow: this.follow };
    if (was.state === 'absent') {
      // Somebody has put a link in place of the directory that was created. Where it leads is theirs.
      if (this.follow && was.linked !== true && (await this.isLink(path))) return;
      return remove(root, path, options);
    }
    if (was.state === 'symlink') {
      const target = was.bytes === undefined ? was.target : Buffer.from(was.bytes, 'base64');
      return putLink(root, path, target, was, options);
    }
    if (was.state === 'directory') {
      const directory = isSameBoot ? was.identity : undefined;
      return putDirectory(root, path, attributesOf(was), { ...options, directory });
    }
    const content = was.digest === undefined ? undefined : contents.content(was.digest);
    await restoreFile(root, path, content, attributesOf(was), options);
  }

  private homeOf({ parent }: OriginalReading): SavedFolder {
    return parent === undefined ? {} : { folder: parent.identity, bootId: this.surroundings.bootId };
  }

  private async withLink(key: string, read: OriginalReading): Promise<PathOriginal> {
    const original = this.originalOf(read);
    const isLinked = original.state === 'absent' && this.follow && (await this.isLink(pathOfKey(key)));
    return isLinked ? { ...original, linked: true } : original;
  }

  private async isLink(path: string): Promise<boolean> {
    return (await pathStateAt(this.surroundings.root, path)).state === 'symlink';
  }

  /** Without the folder in which it was when it was saved. */
  private originalOf({ now, digest, extra }: OriginalReading): PathOriginal {
    if (now.state === 'absent') return { state: 'absent' };
    if (now.state === 'other') throw new RefusedError('node', 'is neither a file, a directory nor a symbolic link');
    const { uid, gid } = now;
    const common = { uid, gid, ...extra };
    switch (now.state) {
      case 'file':
        return {
          ...common,
          state: 'file',
          mode: now.mode,
          ...(digest === undefined ? {} : { digest, size: now.size }),
        };
      case 'symlink':
        return {
          ...common,
          state: 'symlink',
          target: now.target,
          ...(now.bytes === undefined ? {} : { bytes: now.bytes }),
        };
      case 'directory':
        return {
          ...common,
          state: 'directory',
          mode: now.mode,
          identity: now.identity,
          bootId: this.surroundings.bootId,
        };
    }
  }
}

/** What exists at a path. For a file, with the sha256 of its content if that was read. */
type OriginalReading = Omit<PathRead, 'content'> & { readonly digest?: string };

const attributesOf = ({ mode, uid, gid, xattrs, modified, sparse }: Attributes): Attributes => ({
  mode,
  uid,
  gid,
  ...(xattrs === undefined ? {} : { xattrs }),
  ...(modified === undefined ? {} : { modified }),
  ...(sparse === undefined ? {} : { sparse }),
});

/** Attributes that are known for only one of them cannot be compared. */
function extraDiffers(was: Attributes, now: PathRead['extra']): string | undefined {
  if (was.xattrs !== undefined && now?.xattrs !== undefined && !isDeepStrictEqual({ ...was.xattrs }, { ...now.xattrs }))
    return 'extended attributes or ACLs differ from before';
  return was.modified !== undefined && now?.modified !== undefined && was.modified !== now.modified
    ? 'the time of its last change differs from before'
    : undefined;
}
