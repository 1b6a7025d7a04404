import { constants, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Failure } from '../../core/index.js';
import type { NetworkSettings } from '../backends/network/tools.js';
import type { HostSettings } from '../host/host.js';
import type { OpenFile } from '../open-file.js';
import { openOwn, readOwn } from '../state/own-file.js';

/** The applier that a guard replaces. */
export interface GuardedApplier {
  readonly node: string;
  readonly root: string;
  readonly stateDir: string;
  readonly network: NetworkSettings | false;
  readonly host?: HostSettings | undefined;
  /** Without these, the `undo` of a command and files with setuid could not be restored. */
  readonly allowExec: boolean;
  readonly allowSetuid: boolean;
}

/** What an applier is doing, and what is to blame if it hangs in that. */
export interface GuardedStep {
  readonly step: string;
  readonly fault: Failure['fault'];
}

/** A change, as its applier last recorded it. All times are milliseconds of CLOCK_BOOTTIME. */
export interface GuardedChange extends GuardedApplier, GuardedStep {
  readonly lease: string;
  /** The pid of the applier. */
  readonly pid: number;
  /** By this time, the applier has confirmed or has started to roll back. */
  readonly atMs: number;
  /** By this time, the step has ended; `atMs` before the rollback. */
  readonly untilMs: number;
  /** How much longer the guard waits, because the applier may act first. */
  readonly graceMs: number;
  /** An event loop that has not run for this long hangs. */
  readonly hungMs: number;
}

const NAME = 'guard.json';
/** The file is overwritten in place, which needs no disk space. Shorter content is padded with spaces. */
const LENGTH = 4_096;

/** The record of one change under way, in the state folder of its node. */
export class ChangeRecord {
  private constructor(private readonly file: OpenFile) {}

  /** Throws if it cannot be written. */
  static open(change: GuardedChange): ChangeRecord {
    const record = new ChangeRecord(openOwn(join(change.stateDir, NAME), constants.O_RDWR | constants.O_CREAT, 0o600));
    record.write(change);
    return record;
  }

  write(change: GuardedChange): void {
    writeSync(this.file.fd, JSON.stringify(change).padEnd(LENGTH), 0);
  }

  /** No change is under way any more. The file stays, with its space. */
  remove(): void {
    try {
      writeSync(this.file.fd, ''.padEnd(LENGTH), 0);
    } finally {
      this.file.close();
    }
  }
}

/** Undefined if no change is under way. Throws if there is no record, and while it is being written. */
export function readChange(stateDir: string): GuardedChange | undefined {
  const text = readOwn(join(stateDir, NAME)).trim();
  return text === '' ? undefined : (JSON.parse(text) as GuardedChange);
}
