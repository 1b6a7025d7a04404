import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from 'node:fs';
import { RejectedError, UsageError } from '../output/exit.js';

/** The limit for one file or stdin, far more than a change may have, including comments. */
export const MOST_INPUT_BYTES = 4 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
/** How long to wait for a writer of a pipe. */
const WRITER_MS = 2_000;
const POLL_MS = 20;

/** The bytes of a file, pipe or device, up to the limit. Throws UsageError, which names the path, and RejectedError. */
export function readBounded(path: string, label = path): Buffer {
  // A blocking open of a pipe would wait for its writer forever.
  const file = opened(path, label);
  try {
    const stat = fstatSync(file);
    if (stat.isDirectory()) throw new UsageError(`${label} is a folder`);
    if (stat.isFile() && stat.size > MOST_INPUT_BYTES) throw tooLarge(label);
    return readAll(file, label, stat.isFIFO());
  } finally {
    closeSync(file);
  }
}

/** Decodes UTF-8. Throws RejectedError, which names the invalid line. */
export function textOf(bytes: Buffer, label: string): string {
  try {
    return STRICT.decode(bytes);
  } catch {
    const line = bytes.toString('utf8').split('\ufffd')[0]?.split('\n').length ?? 1;
    throw rejected('not-unicode', `${label}:${line}: not valid UTF-8; save the file as UTF-8`);
  }
}

/** The error for an input over the limit. */
export const tooLarge = (label: string): RejectedError =>
  rejected('too-large', `${label} is larger than ${MOST_INPUT_BYTES / 1_024} KiB: a change can have at most 900 KiB`);

const STRICT = new TextDecoder('utf-8', { fatal: true });

const rejected = (code: string, message: string): RejectedError =>
  new RejectedError([{ fragment: '', field: '', code, message, nodes: [] }]);

function opened(path: string, label: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new UsageError(`${label}: ${wordsFor(error, path)}`);
  }
}

function readAll(file: number, label: string, isPipe: boolean): Buffer {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (let waitedMs = 0; ;) {
    const piece = Buffer.alloc(PIECE_BYTES);
    const count = readSome(file, piece, label);
    if (count === 0 && !(isPipe && bytes === 0)) return Buffer.concat(pieces);
    if (count > 0) {
      pieces.push(piece.subarray(0, count));
      bytes += count;
      if (bytes > MOST_INPUT_BYTES) throw tooLarge(label);
      continue;
    }
    if (count === 0 && waitedMs >= WRITER_MS) throw new UsageError(`${label} is a pipe that nothing writes to`);
    sleep(POLL_MS);
    waitedMs += POLL_MS;
  }
}

/** Returns -1 if there is no data yet. */
function readSome(file: number, piece: Buffer, label: string): number {
  try {
    return readSync(file, piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return -1;
    throw new UsageError(`${label}: ${(error as Error).message}`);
  }
}

/** Why a file or folder cannot be opened. */
export function wordsFor(error: unknown, path: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EACCES') return 'permission denied';
  if (code !== 'ENOENT') return message;
  try {
    return `is a link to ${readlinkSync(path)}, which does not exist`;
  } catch {
    return 'no such file or folder';
  }
}

const cell = new Int32Array(new SharedArrayBuffer(4));
const sleep = (ms: number): void => void Atomics.wait(cell, 0, 0, ms);
