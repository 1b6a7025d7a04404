import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';

/** What the guard of a process looks at. */
export interface Watch {
  /** Of the period in which something is under way. A guard of another one has nothing to do any more. */
  readonly id: string;
  /** When the event loop turned last, in milliseconds of CLOCK_BOOTTIME. */
  readonly beatMs: number;
  /** Unless this file has changed by then, the guard has to act; 0: nothing is under way. */
  readonly dueMs: number;
  /** Of the nodes with a change under way. */
  readonly stateDirs: readonly string[];
}

/** Of the seconds since boot. Each first line is as long as the one before, so that none is ever read in half. */
const DIGITS = 12;

/**
 * The file that an applier process and its guard share. The first line is for the shell that waits: the id and the due
 * time in whole seconds. The second one has the rest, as JSON.
 */
export class WatchFile {
  private readonly fd: number;
  private length: number;

  /** Throws when it cannot be made. */
  constructor(readonly path: string) {
    this.fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.length = fstatSync(this.fd).size;
  }

  /** In place, which needs no space on the disk; of a longer text before nothing is left but spaces. */
  write({ id, dueMs, ...rest }: Watch): void {
    const text = `${id} ${String(Math.ceil(dueMs / 1_000)).padStart(DIGITS)}\n${JSON.stringify({ ...rest, dueMs })}`;
    this.length = Math.max(this.length, Buffer.byteLength(text));
    const written = Buffer.alloc(this.length, ' ');
    written.write(text);
    writeSync(this.fd, written, 0, this.length, 0);
  }

  close(): void {
    closeSync(this.fd);
  }
}

/** Throws when there is none, and while it is being written. */
export function readWatch(path: string): Watch {
  const text = readFileSync(path, 'utf8');
  const [id = ''] = text.split(' ', 1);
  return { ...(JSON.parse(text.slice(text.indexOf('\n'))) as Omit<Watch, 'id'>), id };
}
