import { createHash } from 'node:crypto';
import { SHORT, type OpenFile } from './open-file.js';

/** What a file should contain. */
export interface Content {
  /** In bytes; undefined if that is not known. */
  readonly size?: number;
  /** Whether the file contains this and nothing else. */
  isIn(file: OpenFile): Promise<boolean>;
  /** Appends it to a file. */
  writeTo(file: OpenFile): Promise<void>;
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
  writeTo: async (file) => void (await copy(source, file)),
});

/** How much is copied before it is flushed, so that the flush at the end does not take minutes. */
const FLUSHED_BYTES = 64 * 2 ** 20;
const ENDLESS = (): number => Infinity;

/** Copies a file, part by part. Returns the sha256 of what was copied. Throws when the time is over. */
export async function copy(source: OpenFile, target: OpenFile, leftMs = ENDLESS): Promise<string> {
  const hash = createHash('sha256');
  let unflushedBytes = 0;
  for await (const piece of source.pieces()) {
    requireTime(leftMs);
    hash.update(piece);
    await target.append(piece);
    unflushedBytes += piece.length;
    if (unflushedBytes < FLUSHED_BYTES) continue;
    await target.sync();
    unflushedBytes = 0;
  }
  return hash.digest('hex');
}

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
