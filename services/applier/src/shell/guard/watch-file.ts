import { constants, writeSync } from 'node:fs';
import type { OpenFile } from '../open-file.js';
import { openOwn, readOwn } from '../state/own-file.js';

/** What the guard of a process reads. */
export interface Watch {
  /** Identifies the period in which a change is under way. A guard of another period has nothing left to do. */
  readonly id: string;
  /** When the event loop last ran, in milliseconds of CLOCK_BOOTTIME. */
  readonly beatMs: number;
  /** If this file has not changed by then, the guard must act; 0: no change is under way. */
  readonly dueMs: number;
  /** The state folders of the nodes with a change under way. */
  readonly stateDirs: readonly string[];
}

/** The digits of the seconds since boot. Each first line has the same length, so that it is never read in part. */
const DIGITS = 12;

/**
 * The file that an applier process and its guard share. The first line is for the shell script that waits: the id and
 * the due time in whole seconds. The second line has the rest, as JSON.
 */
export class WatchFile {
  private readonly file: OpenFile;
  private length: number;

  /** Throws if it cannot be created. */
  constructor(readonly path: string) {
    this.file = openOwn(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.length = this.file.size;
  }

  /** In place, which needs no disk space. Spaces replace the rest of a longer text. */
  write({ id, dueMs, ...rest }: Watch): void {
    const text = `${id} ${String(Math.ceil(dueMs / 1_000)).padStart(DIGITS)}\n${JSON.stringify({ ...rest, dueMs })}`;
    this.length = Math.max(this.length, Buffer.byteLength(text));
    const bytes = Buffer.alloc(this.length, ' ');
    bytes.write(text);
    writeSync(this.file.fd, bytes, 0, this.length, 0);
  }

  close(): void {
    this.file.close();
  }
}

/** Throws if it does not exist, and while it is being written. */
export function readWatch(path: string): Watch {
  const text = readOwn(path);
  const [id = ''] = text.split(' ', 1);
  return { ...(JSON.parse(text.slice(text.indexOf('\n'))) as Omit<Watch, 'id'>), id };
}
