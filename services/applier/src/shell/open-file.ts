import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  openSync,
  readFile,
  readFileSync,
  writeFile,
  writeFileSync,
} from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';

const flush = promisify(fsync);
const readLong = promisify(readFile);
const writeLong = promisify(writeFile);
/** More than that is left to another thread: so long nothing else of the applier goes on. */
const SHORT = 1 << 20;
/** Node.js reads no longer files at once, and its error does not say so. */
const LONGEST = 2 ** 31 - 1;
/** How long others wait while many files are read one after the other. */
const TURN_MS = 10;

/**
 * An open file or folder. What the page cache answers is called in place: handing it to another thread costs ten times
 * as much as the call (measured: 9.2 → 7.0 ms of CPU per node and change). What waits for the disk (`fsync`, `rename`,
 * `unlink`, `mkdir`, long contents, `/proc`) stays on the thread pool. The price: on a file system that hangs, the
 * applier hangs too, and in a change its guard kills it.
 */
export class OpenFile {
  private isOpen = true;

  private constructor(readonly fd: number) {}

  /** Throws as `open(2)` fails, with its code. */
  static open(path: string, flags: number | string, mode?: number): OpenFile {
    return new OpenFile(openSync(path, flags, mode));
  }

  async read(): Promise<Buffer> {
    const { size } = fstatSync(this.fd);
    if (size > LONGEST) throw new Error(`has ${size} bytes; at most ${LONGEST} can be read`);
    // Of what the kernel makes up when it is read, the size says nothing.
    return size > SHORT || size === 0 ? readLong(this.fd) : readFileSync(this.fd);
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

  /** What it has is on the disk. */
  sync(): Promise<void> {
    return flush(this.fd);
  }

  /** Once: the number may be another file's by the second time. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    closeSync(this.fd);
  }
}

/** Opens, works, and closes also when that fails. */
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
/** For many files that are read without a wait between: timers and messages get their turn every few milliseconds. */
export async function letOthersGoOn(): Promise<void> {
  if (performance.now() - turnBeganMs < TURN_MS) return;
  await setImmediate();
  turnBeganMs = performance.now();
}
