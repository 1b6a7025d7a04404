import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  ftruncateSync,
  openSync,
  read,
  readFile,
  readFileSync,
  write,
  writeFile,
  writeFileSync,
} from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';

const flush = promisify(fsync);
const readLong = promisify(readFile);
const writeLong = promisify(writeFile);
const readPiece = promisify(read);
const writePiece = promisify(write);
const PIECE_BYTES = 256 * 1024;
/** The unit of `blocks` in `stat`, on every file system. */
const BLOCK_BYTES = 512;
/** Longer content is read and written by another thread, because the applier does nothing else meanwhile. */
export const SHORT = 1 << 20;
/** Node.js cannot read longer files at once, and its error does not say so. */
const LONGEST = 2 ** 31 - 1;
/** No file that the kernel generates is longer, unless it has no end. */
const LONGEST_WITHOUT_SIZE = 64 * 2 ** 20;
/** How long other work may wait while many files are read one after another. */
const TURN_MS = 10;

/**
 * An open file or folder. Calls that the page cache can answer run synchronously: moving them to another thread costs
 * ten times as much as the call (measured: 9.2 → 7.0 ms of CPU per node and change). Calls that wait for the disk
 * (`fsync`, `rename`, `unlink`, `mkdir`, long contents, `/proc`) use the thread pool. The drawback: if a file system
 * hangs, the applier hangs too, and during a change its guard kills it.
 */
export class OpenFile {
  private isOpen = true;

  private constructor(readonly fd: number) {}

  /** Throws the error of `open(2)`, with its code. */
  static open(path: string, flags: number | string, mode?: number): OpenFile {
    return new OpenFile(openSync(path, flags, mode));
  }

  async read(): Promise<Buffer> {
    const { size } = fstatSync(this.fd);
    if (size > LONGEST) throw new Error(`has ${size} bytes; at most ${LONGEST} can be read`);
    if (size === 0) return this.readWithoutSize();
    return size > SHORT ? readLong(this.fd) : readFileSync(this.fd);
  }

  /** At most this many bytes from its start. Ends early with what it has once `isLate`. */
  async start(bytes: number, isLate = (): boolean => false): Promise<Buffer> {
    const parts: Buffer[] = [];
    let length = 0;
    for await (const piece of this.pieces()) {
      parts.push(Buffer.from(piece));
      length += piece.length;
      if (length >= bytes || isLate()) break;
    }
    return Buffer.concat(parts, Math.min(length, bytes));
  }

  /** It is empty, or the kernel generates it. Some of those never end, such as `/proc/self/pagemap`. */
  private async readWithoutSize(): Promise<Buffer> {
    const content = await this.start(LONGEST_WITHOUT_SIZE + 1);
    if (content.length > LONGEST_WITHOUT_SIZE)
      throw new Error(`has no size, and more than ${LONGEST_WITHOUT_SIZE} bytes: files without an end cannot be read`);
    return content;
  }

  get size(): number {
    return fstatSync(this.fd).size;
  }

  /** The content in parts. Each part overwrites the previous one. */
  async *pieces(): AsyncGenerator<Buffer, void> {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    for (let at = 0; ;) {
      const { bytesRead } = await readPiece(this.fd, piece, 0, piece.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }

  /** Writes one of many parts. Nothing else has to wait for a slow disk. */
  append(piece: Uint8Array): Promise<void> {
    return writeLong(this.fd, piece);
  }

  /** Writes a part at this position, in bytes. */
  async writeAt(piece: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < piece.length;) {
      const { bytesWritten } = await writePiece(this.fd, piece, done, piece.length - done, at + done);
      done += bytesWritten;
    }
  }

  /** Whether parts of it take no space on the disk. They read as zeros. */
  get hasHoles(): boolean {
    return this.bytesWithoutHoles < this.size;
  }

  /** What a copy of it takes on the disk if it has the same holes. */
  get bytesWithoutHoles(): number {
    const { size, blocks } = fstatSync(this.fd);
    return Math.min(size, blocks * BLOCK_BYTES);
  }

  truncate(bytes: number): void {
    ftruncateSync(this.fd, bytes);
  }

  async write(content: string | Buffer): Promise<void> {
    if (content.length > SHORT) await writeLong(this.fd, content);
    else writeFileSync(this.fd, content);
  }

  chmod(mode: number): void {
    fchmodSync(this.fd, mode);
  }

  chown(uid: number, gid: number): void {
    fchownSync(this.fd, uid, gid);
  }

  /** Flushes it to the disk. */
  sync(): Promise<void> {
    return flush(this.fd);
  }

  /** Only once: the number may be that of another file the second time. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    closeSync(this.fd);
  }
}

/** Opens a file, runs the function, and closes the file, even after an error. */
export async function withOpen<T>(
  path: string,
  flags: number | string,
  work: (file: OpenFile) => Promise<T>,
  mode?: number,
): Promise<T> {
  const file = OpenFile.open(path, flags, mode);
  try {
    return await work(file);
  } finally {
    file.close();
  }
}

let turnBeganMs = 0;
/** For reading many files without other waits: runs timers and messages every few milliseconds. */
export async function letOthersGoOn(): Promise<void> {
  if (performance.now() - turnBeganMs < TURN_MS) return;
  await setImmediate();
  turnBeganMs = performance.now();
}
