import { createHash } from 'node:crypto';
import { SHORT, type OpenFile } from './open-file.js';

/** What a file should contain. */
export interface Content {
  /** In bytes; undefined if that is not known. */
  readonly size?: number;
  /** Whether the file contains this and nothing else. */
  isIn(file: OpenFile): Promise<boolean>;
  /** Writes it to an empty file. `withHoles`: zeros that fill a page take no space on the disk. */
  writeTo(file: OpenFile, withHoles?: boolean): Promise<void>;
}

/** Content that fits into memory. */
export const bytesContent = (bytes: Buffer): Content => ({
  size: bytes.length,
  isIn: async (file) => bytes.equals(await file.read()),
  writeTo: (file) => file.write(bytes),
});

/** What an open file contains. */
export const fileContent = (source: OpenFile): Content => ({
  isIn: async (file) => (await digestOf(file)) === (await digestOf(source)),
  writeTo: async (file, withHoles = false) => void (await copy(source, file, { withHoles })),
});

/** How much is copied before it is flushed, so that the flush at the end does not take minutes. */
const FLUSHED_BYTES = 64 * 2 ** 20;
const ENDLESS = (): number => Infinity;
/** Holes consist of whole pages. */
const PAGE_BYTES = 4_096;
const ZEROS = Buffer.alloc(PAGE_BYTES);

/** How to copy a file. */
export interface CopyOptions {
  /** The time that is left. Default: no limit. */
  readonly leftMs?: () => number;
  /** Leaves holes where the content is zeros. Default: writes everything. */
  readonly withHoles?: boolean;
}

/**
 * Copies a file to an empty one, part by part. Returns the sha256 of what was copied. Throws when the time is over.
 */
export async function copy(source: OpenFile, target: OpenFile, options: CopyOptions = {}): Promise<string> {
  const { leftMs = ENDLESS, withHoles = false } = options;
  const hash = createHash('sha256');
  let unflushedBytes = 0;
  let at = 0;
  for await (const piece of source.pieces()) {
    requireTime(leftMs);
    hash.update(piece);
    unflushedBytes += withHoles ? await writeWithHoles(target, piece, at) : await writeAll(target, piece);
    at += piece.length;
    if (unflushedBytes < FLUSHED_BYTES) continue;
    await target.sync();
    unflushedBytes = 0;
  }
  if (withHoles) target.truncate(at);
  return hash.digest('hex');
}

async function writeAll(target: OpenFile, piece: Buffer): Promise<number> {
  await target.append(piece);
  return piece.length;
}

/** Writes the pages that are not all zeros. Returns how many bytes it wrote. */
async function writeWithHoles(target: OpenFile, piece: Buffer, at: number): Promise<number> {
  let written = 0;
  for (let from = 0; from < piece.length;) {
    let to = from;
    while (to < piece.length && !isZero(piece.subarray(to, to + PAGE_BYTES))) to += PAGE_BYTES;
    const data = piece.subarray(from, to);
    if (data.length > 0) await target.writeAt(data, at + from);
    written += data.length;
    from = to;
    while (from < piece.length && isZero(piece.subarray(from, from + PAGE_BYTES))) from += PAGE_BYTES;
  }
  return written;
}

const isZero = (page: Buffer): boolean => page.equals(ZEROS.subarray(0, page.length));

/** The sha256 of what a file contains. A long file is never in memory as a whole. Throws when the time is over. */
export async function digestOf(file: OpenFile, leftMs = ENDLESS): Promise<string> {
  if (file.size <= SHORT) return sha256(await file.read());
  const hash = createHash('sha256');
  for await (const piece of file.pieces()) {
    requireTime(leftMs);
    hash.update(piece);
  }
  return hash.digest('hex');
}

function requireTime(leftMs: () => number): void {
  if (leftMs() <= 0) throw new Error('there was not enough time to read it');
}

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
