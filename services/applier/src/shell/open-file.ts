import { closeSync, fchmodSync, fchownSync, fstatSync, fsync, openSync, readFile, readFileSync, writeFile, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

const flush = promisify(fsync);
const readLong = promisify(readFile);
const writeLong = promisify(writeFile);
/** More than that is left to another thread: so long nothing else of the applier goes on. */
const SHORT = 1 << 20;

/**
 * An open file or folder. What the page cache answers is called in place, for a hand-over to another thread costs ten times as much as the
 * call; what waits for the disk (`sync`, long contents) is not (docs/adr/0031).
 */
export class OpenFile {
  private constructor(readonly fd: number) {}

  /** Throws as `open(2)` fails, with its code. */
  static open(path: string, flags: number | string, mode?: number): OpenFile {
    return new OpenFile(openSync(path, flags, mode));
  }

  read(): Promise<Buffer> {
    return fstatSync(this.fd).size > SHORT ? readLong(this.fd) : Promise.resolve(readFileSync(this.fd));
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

  close(): void {
    closeSync(this.fd);
  }
}

/** Opens, works, and closes whatever comes of it. */
export async function withOpen<T>(path: string, flags: number | string, work: (file: OpenFile) => Promise<T>, mode?: number): Promise<T> {
  const file = OpenFile.open(path, flags, mode);
  try {
    return await work(file);
  } finally {
    file.close();
  }
}
