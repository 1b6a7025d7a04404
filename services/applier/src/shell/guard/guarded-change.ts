import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { NetworkSettings } from '../backends/network/tools.js';
import type { HostSettings } from '../host/host.js';

/** Which applier a guard takes the place of. */
export interface GuardedApplier {
  readonly node: string;
  readonly root: string;
  readonly stateDir: string;
  readonly network: NetworkSettings | false;
  readonly host?: HostSettings | undefined;
}

/** What an applier is doing, as it last said. All times are milliseconds of CLOCK_BOOTTIME. */
export interface GuardedChange extends GuardedApplier {
  readonly lease: string;
  /** The process that does it. */
  readonly pid: number;
  readonly step: string;
  /** By then the applier has confirmed, or has begun to roll back. */
  readonly atMs: number;
  /** By then the step is over; `atMs` before the rollback. */
  readonly untilMs: number;
  /** So much longer the guard waits: the applier's own turn comes first. */
  readonly graceMs: number;
  /** An event loop that has not turned for so long is not slow but hangs. */
  readonly hungMs: number;
}

const NAME = 'guard.json';
/** It is overwritten in place, which needs no space on the disk; what is shorter is filled up with spaces. */
const LENGTH = 4_096;

/** The record of one change under way, in the state folder of its node. */
export class ChangeRecord {
  private constructor(private readonly fd: number) {}

  /** Throws when it cannot be written. */
  static open(change: GuardedChange): ChangeRecord {
    const record = new ChangeRecord(openSync(join(change.stateDir, NAME), constants.O_RDWR | constants.O_CREAT, 0o600));
    record.write(change);
    return record;
  }

  write(change: GuardedChange): void {
    writeSync(this.fd, JSON.stringify(change).padEnd(LENGTH), 0);
  }

  /** Nothing is under way any more. The file stays, with its space. */
  remove(): void {
    try {
      writeSync(this.fd, ''.padEnd(LENGTH), 0);
    } finally {
      closeSync(this.fd);
    }
  }
}

/** Undefined where nothing is under way. Throws where there is no record, and while it is being written. */
export function readChange(stateDir: string): GuardedChange | undefined {
  const text = readFileSync(join(stateDir, NAME), 'utf8').trim();
  return text === '' ? undefined : (JSON.parse(text) as GuardedChange);
}
