import { createHash } from 'node:crypto';
import { constants, open, type FileHandle } from 'node:fs/promises';
import type { NewObject } from '#libs/client';
import { UsageError } from '../output/exit.js';

const PIECE_BYTES = 1 << 20;
const NAME = /^[!-~]{1,255}$/;

/** Throws UsageError, with this way to choose another name, for what cannot be the name of an object. */
export function checkObjectName(name: string, otherwise: string): void {
  if (NAME.test(name)) return;
  throw new UsageError(
    `${JSON.stringify(name)} cannot be the name of an object: choose 1 to 255 printable ASCII characters without spaces with ${otherwise}`,
  );
}

/**
 * A local file as an object. It is read piece by piece: once for its sha256, and again if it is uploaded. Throws
 * UsageError for what is not a file.
 */
export async function objectOfFile(path: string, object: string): Promise<NewObject> {
  const file = await opened(path);
  try {
    if (!(await file.stat()).isFile()) throw new UsageError(`${path} is not a file`);
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(PIECE_BYTES);
    let bytes = 0;
    for await (const piece of piecesOf(file, PIECE_BYTES, () => buffer)) {
      hash.update(piece);
      bytes += piece.length;
    }
    return { object, sha256: hash.digest('hex'), bytes, chunks: (chunkBytes) => chunksOf(path, chunkBytes) };
  } finally {
    await file.close();
  }
}

async function* chunksOf(path: string, chunkBytes: number): AsyncGenerator<Uint8Array, void> {
  const file = await opened(path);
  try {
    yield* piecesOf(file, chunkBytes);
  } finally {
    await file.close();
  }
}

/** Pieces of exactly this size, except for the last one, each in a buffer from `next`. */
async function* piecesOf(
  file: FileHandle,
  bytes: number,
  next: () => Buffer = () => Buffer.allocUnsafe(bytes),
): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const piece = next();
    let length = 0;
    while (length < bytes) {
      const { bytesRead } = await file.read(piece, length, bytes - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > 0) yield piece.subarray(0, length);
    if (length < bytes) return;
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(`${path}: ${isMissing ? 'no such file' : (error as Error).message}`);
  }
}
