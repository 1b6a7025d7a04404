import { constants, lstatSync, readdirSync } from 'node:fs';
import { mkdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { copy, digestOf, sha256, type Content } from '../content.js';
import { DigestCache } from '../digest-cache.js';
import { SHORT, type OpenFile } from '../open-file.js';
import { freeBytesIn } from './free-space.js';
import { ObjectSizes } from './object-sizes.js';
import { withOwn } from './own-file.js';
import { codeOf, isMissing, naming, syncFolder, writeWhole, type FileContent } from './whole-file.js';

const DIGEST = /^[0-9a-f]{64}$/;
const CONTINUE = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND;
/** No machine reads a file and computes its sha256 faster. A sparse file of any size fits on a disk. */
const FASTEST_BYTES_PER_MS = 8_000_000;
const CONTENT_FILE = /^[0-9a-f]{64}(\.tmp|\.part)?$/;

/** Contents by their sha256, in the state folder: of originals, and of objects that a change needs. */
export class OriginalStore {
  /** The sizes of objects, which are known longer than their contents are kept. */
  readonly sizes: ObjectSizes;
  private readonly digests = new DigestCache();

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
    return DIGEST.test(digest) && (await this.read(digest, isIt)) === true;
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

  /** Deletes all contents except these. Returns what could not be removed, and why. */
  tidy(digests: ReadonlySet<string>): Promise<string[]> {
    return removeFrom(this.folder, (name) => CONTENT_FILE.test(name) && !digests.has(name));
  }

  /** Throws if what the file takes on the disk does not fit. Its holes take nothing. */
  private async requireRoom({ size, bytesWithoutHoles: bytes }: OpenFile): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const freeBytes = await freeBytesIn(this.folder);
    if (bytes <= freeBytes || this.hasOfSize(size)) return;
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
    await writeWhole(this.pathOf(digest), content);
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
