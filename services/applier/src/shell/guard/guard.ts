import { randomBytes } from 'node:crypto';
import type { Log } from '../../core/index.js';
import type { Clock } from '../ports.js';
import { ChangeRecord, type GuardedApplier, type GuardedChange, type GuardedStep } from './guarded-change.js';
import { startSentinel, type Sentinel } from './sentinel.js';
import { WatchFile } from './watch-file.js';

/** For an applier: what replaces it if it hangs or is gone in the middle of a change. */
export interface Guard {
  /** From now on, a change is under way. Throws if there can be no guard. Then the change does not start. */
  set(lease: string, atMs: number, applyMs: number): Promise<void>;
  /** Call this before each step. The step must end by `untilMs`, or by `atMs` of the change. */
  feed(step: GuardedStep, untilMs?: number): void;
  /** No change is under way any more. */
  release(): void;
}

/** For an applier that is itself a guard. */
export const NO_GUARD: Guard = { set: () => Promise.resolve(), feed: () => undefined, release: () => undefined };

/** The share of the lease by which an applier may be late before it counts as hung. */
const GRACE_SHARE = 1 / 6;
const SHORTEST_GRACE_MS = 3_000;
/** A machine under load may delay an event loop for seconds. */
const SHORTEST_HUNG_MS = 10_000;
const BEAT_MS = 1_000;

export interface ProcessGuardOptions {
  /** The watch file, in a folder that outlives the process. */
  readonly file: string;
  /** Starts the guard: `[...command, 'ID FILE']`. */
  readonly command: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * One guard for all appliers of a process. While any of them has a change under way, the event loop writes a sign of
 * life every second, and a sentinel outside the process checks it. Otherwise neither runs.
 */
export class ProcessGuard {
  private readonly changes = new Map<string, { change: GuardedChange; readonly record: ChangeRecord }>();
  private id = '';
  private file: WatchFile | undefined;
  private sentinel: Promise<Sentinel> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isFailing = false;

  constructor(private readonly options: ProcessGuardOptions) {}

  of(applier: GuardedApplier): Guard {
    const { stateDir } = applier;
    return {
      set: (lease, atMs, applyMs) =>
        this.set(applier, lease, atMs, applyMs).catch((error: Error) => {
          throw new Error(`cannot be set in ${stateDir}: ${error.message}`, { cause: error });
        }),
      feed: (step, untilMs) => this.feed(stateDir, step, untilMs),
      release: () => this.release(stateDir),
    };
  }

  private async set(applier: GuardedApplier, lease: string, atMs: number, applyMs: number): Promise<void> {
    this.release(applier.stateDir);
    const graceMs = Math.max(SHORTEST_GRACE_MS, applyMs * GRACE_SHARE);
    const change: GuardedChange = {
      ...applier,
      lease,
      pid: process.pid,
      step: 'guard',
      fault: 'node',
      atMs,
      untilMs: atMs,
      graceMs,
      hungMs: Math.max(SHORTEST_HUNG_MS, graceMs),
    };
    this.changes.set(applier.stateDir, { change, record: ChangeRecord.open(change) });
    try {
      if (this.sentinel === undefined) this.begin();
      else this.beat();
      await this.sentinel;
    } catch (error) {
      this.release(applier.stateDir);
      throw error;
    }
  }

  private feed(stateDir: string, step: GuardedStep, untilMs?: number): void {
    const change = this.changes.get(stateDir);
    if (change === undefined) return;
    change.change = { ...change.change, ...step, untilMs: untilMs ?? change.change.atMs };
    this.attempt(() => change.record.write(change.change));
  }

  private release(stateDir: string): void {
    const change = this.changes.get(stateDir);
    if (change === undefined) return;
    this.changes.delete(stateDir);
    this.attempt(() => change.record.remove());
    if (this.changes.size === 0) this.end();
  }

  private begin(): void {
    this.id = randomBytes(6).toString('hex');
    this.file = new WatchFile(this.options.file);
    this.beat(true);
    this.timer = setInterval(() => this.beat(), BEAT_MS).unref();
    this.sentinel = startSentinel(this.options.command, this.id, this.options.file);
    this.sentinel.catch(() => undefined);
  }

  private end(): void {
    clearInterval(this.timer);
    this.beat();
    this.attempt(() => this.file?.close());
    void this.sentinel?.then((sentinel) => sentinel.end()).catch(() => undefined);
    [this.file, this.sentinel] = [undefined, undefined];
  }

  /** The event loop runs. */
  private beat(isFirst = false): void {
    const beatMs = this.options.clock();
    const changes = [...this.changes.values()].map(({ change }) => change);
    const dueMs = changes.length === 0 ? 0 : Math.min(...changes.map((change) => dueOf(change, beatMs)));
    const write = (): void =>
      this.file?.write({ id: this.id, beatMs, dueMs, stateDirs: changes.map(({ stateDir }) => stateDir) });
    if (isFirst) write();
    else this.attempt(write);
  }

  /** A write that fails does not end a change. At worst, the guard takes the applier for hung. */
  private attempt(write: () => void): void {
    try {
      write();
      this.isFailing = false;
    } catch (error) {
      if (!this.isFailing)
        this.options.log.warn(
          { error: (error as Error).message },
          'the guard cannot be told that this process is alive',
        );
      this.isFailing = true;
    }
  }
}

/** When an applier without signs of life counts as hung, or its step as endless. */
export const dueOf = ({ untilMs, graceMs, hungMs }: GuardedChange, beatMs: number): number =>
  Math.min(beatMs + hungMs, untilMs + graceMs);
