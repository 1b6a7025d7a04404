import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { ServiceName } from '#libs/contracts';
import { Guard } from './guard.js';

/**
 * Which services share a process on a single machine. Rollouts wait for the scheduler, so it has its own; the others
 * read the ledger once together. In a cluster each has its own process, and its own rights.
 */
export const PROCESSES: readonly (readonly ServiceName[])[] = [
  ['scheduler'],
  ['merger', 'validator', 'inventory', 'drain'],
];

/** One process that is to run for as long as the supervisor does. */
export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Where its output goes; without one it is dropped. */
  readonly logFile?: string;
  /** Ends only after all others have: what they need to end cleanly. */
  readonly endsLast?: boolean;
}

export interface SupervisorOptions {
  readonly onChange?: (pids: Readonly<Record<string, number>>) => void;
  readonly onDeath?: (name: string, how: string, againInMs: number) => void;
  readonly firstPauseMs?: number;
  readonly longestPauseMs?: number;
  /** Having stayed up so long, its next death is treated as the first. */
  readonly steadyMs?: number;
}

interface SupervisedProcess {
  readonly spec: ChildSpec;
  child: ChildProcess | undefined;
  timer: NodeJS.Timeout | undefined;
  pauseMs: number;
  startedMs: number;
}

/** Together below the 10 s in which everything has to be over. */
const GRACE_MS = { first: 6_000, last: 2_500 } as const;

/** Restarts processes that end, with growing pauses. They end with this process, even if it is killed. */
export class Supervisor {
  private readonly kept = new Map<string, SupervisedProcess>();
  private readonly guard = new Guard();
  private stopping = false;

  constructor(private readonly options: SupervisorOptions = {}) {}

  add(spec: ChildSpec): void {
    if (this.kept.has(spec.name)) throw new Error(`${spec.name} is already supervised`);
    const kept: SupervisedProcess = {
      spec,
      child: undefined,
      timer: undefined,
      pauseMs: this.firstPauseMs,
      startedMs: 0,
    };
    this.kept.set(spec.name, kept);
    this.start(kept);
  }

  get pids(): Readonly<Record<string, number>> {
    const running = [...this.kept.values()].filter(({ child }) => child?.pid !== undefined);
    return Object.fromEntries(running.map(({ spec, child }) => [spec.name, child?.pid as number]));
  }

  /** Ends them all: asked first, killed when they do not; within 10 s. */
  async stop(): Promise<void> {
    this.stopping = true;
    const all = [...this.kept.values()];
    for (const { timer } of all) clearTimeout(timer);
    await Promise.all(all.filter(({ spec }) => spec.endsLast !== true).map(({ child }) => end(child, GRACE_MS.first)));
    await Promise.all(all.filter(({ spec }) => spec.endsLast === true).map(({ child }) => end(child, GRACE_MS.last)));
    this.guard.close();
  }

  private start(kept: SupervisedProcess): void {
    const { spec } = kept;
    const log = spec.logFile === undefined ? undefined : openSync(spec.logFile, 'a');
    kept.startedMs = performance.now();
    const child = spawn(spec.command, [...spec.args], {
      env: spec.env ?? process.env,
      stdio: ['ignore', log ?? 'ignore', log ?? 'ignore'],
      detached: true, // Ctrl-C in a terminal goes to the supervisor alone, which ends them in order
    });
    if (log !== undefined) closeSync(log);
    kept.child = child;
    child.once('error', (error) => child.pid === undefined && this.ended(kept, child, error.message));
    child.once('exit', (code, signal) =>
      this.ended(kept, child, signal === null ? `exit code ${code}` : `signal ${signal}`),
    );
    this.changed();
  }

  private ended(kept: SupervisedProcess, child: ChildProcess, how: string): void {
    if (kept.child !== child) return;
    kept.child = undefined;
    if (!this.stopping) {
      const isSteady = performance.now() - kept.startedMs >= (this.options.steadyMs ?? 10_000);
      const pauseMs = isSteady ? this.firstPauseMs : kept.pauseMs;
      kept.pauseMs = Math.min(pauseMs * 2, this.options.longestPauseMs ?? 10_000);
      this.options.onDeath?.(kept.spec.name, how, pauseMs);
      kept.timer = setTimeout(() => this.start(kept), pauseMs);
    }
    this.changed();
  }

  private changed(): void {
    this.guard.watch(Object.values(this.pids));
    if (!this.stopping) this.options.onChange?.(this.pids);
  }

  private get firstPauseMs(): number {
    return this.options.firstPauseMs ?? 200;
  }
}

function end(child: ChildProcess | undefined, graceMs: number): Promise<void> {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}
