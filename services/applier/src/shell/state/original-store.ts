import { constants, lstatSync, readdirSync } from 'node:fs';
import { mkdir, rename, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { copy, digestOf, sha256, type Content } from '../content.js';
import { DigestCache } from '../digest-cache.js';
import { SHORT, type OpenFile } from '../open-file.js';
import { freeBytesIn } from './free-space.js';
import { ObjectSizes } from './object-sizes.js';
import { withOwn } from './own-file.js';
import { codeOf, isFull, isMissing, naming, syncFolder, writeWhole, type FileContent } from './whole-file.js';

const DIGEST = /^[0-9a-f]{64}$/;
const CONTINUE = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND;
/** No machine reads a file and computes its sha256 faster. A sparse file of any size fits on a disk. */
const FASTEST_BYTES_PER_MS = 8_000_000;
const PART_FILE = /^[0-9a-f]{64}\.part$/;
/** How long contents stay that a lease has downloaded in vain. */
const KEPT_MS = 86_400_000;
/** The unit in which `stat` counts what a file takes on the disk. */
const BLOCK_BYTES = 512;
const CONTENT_FILE = /^[0-9a-f]{64}(\.tmp|\.part)?$/;

/** Contents by their sha256, in the state folder: of originals, and of objects that a change needs. */
export class OriginalStore {
  /** The sizes of objects, which are known longer than their contents are kept. */
  readonly sizes: ObjectSizes;
  private readonly digests = new DigestCache();
  /** What no original refers to, and what may be needed again: by name. */
  private readonly kept = new Set<string>();

  constructor(readonly folder: string) {
    this.sizes = new ObjectSizes(join(folder, 'sizes.json'));
  }

  /** Stores the content of a file, and returns its sha256. Throws if the file does not fit, or not in this time. */
  async keep(file: OpenFile, leftMs: () => number): Promise<string> {
    if (file.size <= SHORT) {
      const content = await file.read();
      return this.keepAs(sha256(content), content);
    }
    await this.requireRoom(file);
    try {
      if (file.size > leftMs() * FASTEST_BYTES_PER_MS) throw new Error('it cannot be read in time');
      const digest = await digestOf(file, leftMs);
      const write = async (kept: OpenFile): Promise<void> => {
        if ((await copy(file, kept, { leftMs, withHoles: file.hasHoles })) !== digest)
          throw new Error('it was changed while it was read');
      };
      return await this.keepAs(digest, write, leftMs);
    } catch (error) {
      if (leftMs() > 0 && file.size <= leftMs() * FASTEST_BYTES_PER_MS) throw error;
      throw new Error(
        `has ${file.size} bytes, and the change had not enough time to save them: move the file away, or use a longer applyTimeout`,
        { cause: error },
      );
    }
  }

  /** Whether the content is stored and undamaged. */
  async has(digest: string, leftMs?: () => number): Promise<boolean> {
    const isIt = async (file: OpenFile): Promise<boolean> => (await digestOf(file, leftMs)) === digest;
    const has = DIGEST.test(digest) && (await this.read(digest, isIt)) === true;
    if (has) this.kept.delete(digest);
    return has;
  }

  content(digest: string): Content {
    const lost = (): Error => new Error(`${this.pathOf(digest)} is missing or damaged`);
    const size = this.sizes.of(digest);
    return {
      ...(size === undefined ? {} : { size }),
      isIn: async (file) => {
        const isSame = (await this.digests.digestOf(file)) === digest;
        if (isSame) await this.sizes.learn(digest, file.size);
        return isSame;
      },
      writeTo: async (file, withHoles = false) => {
        const copied = await this.read(digest, async (kept) => {
          if (kept.size > SHORT || withHoles) return copy(kept, file, { withHoles });
          const content = await kept.read();
          if (sha256(content) !== digest) throw lost();
          await file.write(content);
          return digest;
        });
        if (copied !== digest) throw lost();
      },
    };
  }

  pathOf(digest: string): string {
    return join(this.folder, digest);
  }

  /** Stores content that arrives in parts. `receive` continues after what the file already has, and syncs it. */
  async receive<T>(digest: string, receive: (part: OpenFile) => Promise<T>): Promise<T> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const path = this.partOf(digest);
    this.kept.delete(basename(path));
    return withOwn(path, CONTINUE, receive, 0o600).catch((error: unknown) => {
      throw codeOf(error) === '' ? error : naming(path, error);
    });
  }

  /** Marks the received content as complete. */
  async adopt(digest: string): Promise<void> {
    await rename(this.partOf(digest), this.pathOf(digest));
    await syncFolder(this.folder);
    await this.sizes.learn(digest, lstatSync(this.pathOf(digest)).size);
  }

  /** Deletes the received part of a content. */
  async drop(digest: string): Promise<void> {
    await unlink(this.partOf(digest)).catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));
  }

  /**
   * Deletes all contents except these. With `keepsObjects`, what was downloaded in the last day stays too, if at least
   * as much space is free: the next lease continues with it. Returns what could not be removed, and why.
   */
  async tidy(digests: ReadonlySet<string>, keepsObjects = false): Promise<string[]> {
    this.kept.clear();
    const isObject = (name: string): boolean => PART_FILE.test(name) || this.sizes.of(name) !== undefined;
    const objects = keepsObjects ? await this.keptOf((name) => !digests.has(name) && isObject(name)) : [];
    for (const name of objects) this.kept.add(name);
    return removeFrom(this.folder, (name) => CONTENT_FILE.test(name) && !digests.has(name) && !this.kept.has(name));
  }

  /** Deletes what the last `tidy` has kept and nothing has used since. Returns whether there was anything. */
  async giveUpKept(): Promise<boolean> {
    const names = [...this.kept];
    this.kept.clear();
    for (const name of names) await unlink(join(this.folder, name)).catch(() => undefined);
    return names.length > 0;
  }

  /** The newest of these contents, and parts of them, as far as they may stay. */
  private async keptOf(mayStay: (name: string) => boolean): Promise<readonly string[]> {
    const files = namesIn(this.folder, [])
      .filter((name) => mayStay(name))
      .flatMap((name) => {
        const found = lstatSync(join(this.folder, name), { throwIfNoEntry: false });
        const isFresh = found !== undefined && Math.abs(Date.now() - found.mtimeMs) < KEPT_MS;
        return isFresh ? [{ name, bytes: found.blocks * BLOCK_BYTES, mtimeMs: found.mtimeMs }] : [];
      })
      .sort((a, b) => b.mtimeMs - a.mtimeMs);
    let freeBytes = files.length === 0 ? 0 : await freeBytesIn(this.folder);
    for (const { bytes } of files) freeBytes += bytes;
    const kept: string[] = [];
    for (const { name, bytes } of files) {
      freeBytes -= 2 * bytes;
      if (freeBytes < 0) break;
      kept.push(name);
    }
    return kept;
  }

  /** Throws if what the file takes on the disk does not fit. Its holes take nothing. */
  private async requireRoom({ size, bytesWithoutHoles: bytes }: OpenFile): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const fits = async (): Promise<boolean> => bytes <= (await freeBytesIn(this.folder));
    if ((await fits()) || this.hasOfSize(size) || ((await this.giveUpKept()) && (await fits()))) return;
    const freeBytes = await freeBytesIn(this.folder);
    throw new Error(
      `has ${bytes} bytes, which must be saved in ${this.folder}, but only ${freeBytes} are free: free disk space there, or move the file away`,
    );
  }

  /** Whether there is content of this size: perhaps the same, which was saved before a kill. */
  private hasOfSize(bytes: number): boolean {
    return readdirSync(this.folder).some(
      (name) => lstatSync(join(this.folder, name), { throwIfNoEntry: false })?.size === bytes,
    );
  }

  private async keepAs(digest: string, content: FileContent, leftMs?: () => number): Promise<string> {
    if (await this.has(digest, leftMs)) return digest;
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const write = (): Promise<void> => writeWhole(this.pathOf(digest), content);
    await write().catch(async (error: unknown) => {
      if (!isFull(error) || !(await this.giveUpKept())) throw error;
      await write();
    });
    return digest;
  }

  /** Undefined if there is no such content. */
  private async read<T>(digest: string, work: (file: OpenFile) => Promise<T>): Promise<T | undefined> {
    try {
      return await withOwn(this.pathOf(digest), constants.O_RDONLY, work);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw naming(this.pathOf(digest), error);
    }
  }

  private partOf(digest: string): string {
    return `${this.pathOf(digest)}.part`;
  }
}

/** Removes files from a folder. Returns what could not be removed, and why. */
export async function removeFrom(folder: string, isOver: (name: string) => boolean): Promise<string[]> {
  const troubles: string[] = [];
  for (const name of namesIn(folder, troubles))
    if (isOver(name))
      await unlink(join(folder, name)).catch((error: unknown) => {
        if (!isMissing(error)) troubles.push((error as Error).message);
      });
  return troubles;
}

function namesIn(folder: string, troubles: string[]): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (!isMissing(error)) troubles.push((error as Error).message);
    return [];
  }
}
