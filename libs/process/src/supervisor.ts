import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { ServiceName } from '#libs/contracts';
import { Guard } from './guard.js';

/**
 * Which services share a process on a single machine. Rollouts wait for the scheduler, so it has its own. The others
 * share one reading of the ledger. In a cluster, each service has its own process and its own permissions.
 */
export const PROCESSES: readonly (readonly ServiceName[])[] = [
  ['scheduler'],
  ['merger', 'validator', 'inventory', 'drain'],
];

/** One process to keep running as long as the supervisor runs. */
export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Receives its output. Without it, the output is dropped. */
  readonly logFile?: string;
  /** Ends only after all others, because they need it to end cleanly. */
  readonly endsLast?: boolean;
}

export interface SupervisorOptions {
  readonly onChange?: (pids: Readonly<Record<string, number>>) => void;
  readonly onDeath?: (name: string, how: string, againInMs: number) => void;
  readonly firstPauseMs?: number;
  readonly longestPauseMs?: number;
  /** After a process has stayed up this long, its next end is treated as its first. */
  readonly steadyMs?: number;
}

interface SupervisedProcess {
  readonly spec: ChildSpec;
  child: ChildProcess | undefined;
  timer: NodeJS.Timeout | undefined;
  pauseMs: number;
  startedMs: number;
}

/** Together less than 10 s, in which everything must have ended. */
const GRACE_MS = { first: 6_000, last: 2_500 } as const;

/** Restarts processes that end, with growing pauses. They end with this process, even if it is killed. */
export class Supervisor {
  private readonly processes = new Map<string, SupervisedProcess>();
  private readonly guard = new Guard();
  private stopping = false;

  constructor(private readonly options: SupervisorOptions = {}) {}

  add(spec: ChildSpec): void {
    if (this.processes.has(spec.name)) throw new Error(`${spec.name} is already supervised`);
    const processes: SupervisedProcess = {
      spec,
      child: undefined,
      timer: undefined,
      pauseMs: this.firstPauseMs,
      startedMs: 0,
    };
    this.processes.set(spec.name, processes);
    this.start(processes);
  }

  get pids(): Readonly<Record<string, number>> {
    const running = [...this.processes.values()].filter(({ child }) => child?.pid !== undefined);
    return Object.fromEntries(running.map(({ spec, child }) => [spec.name, child?.pid as number]));
  }

  /** Ends all of them within 10 s: asks first, then kills those that are still running. */
  async stop(): Promise<void> {
    this.stopping = true;
    const all = [...this.processes.values()];
    for (const { timer } of all) clearTimeout(timer);
    await Promise.all(all.filter(({ spec }) => spec.endsLast !== true).map(({ child }) => end(child, GRACE_MS.first)));
    await Promise.all(all.filter(({ spec }) => spec.endsLast === true).map(({ child }) => end(child, GRACE_MS.last)));
    this.guard.close();
  }

  private start(processes: SupervisedProcess): void {
    const { spec } = processes;
    const log = spec.logFile === undefined ? undefined : openSync(spec.logFile, 'a');
    processes.startedMs = performance.now();
    const child = spawn(spec.command, [...spec.args], {
      env: spec.env ?? process.env,
      stdio: ['ignore', log ?? 'ignore', log ?? 'ignore'],
      detached: true, // Ctrl-C in a terminal goes to the supervisor alone, which ends them in order
    });
    if (log !== undefined) closeSync(log);
    processes.child = child;
    child.once('error', (error) => child.pid === undefined && this.ended(processes, child, error.message));
    child.once('exit', (code, signal) =>
      this.ended(processes, child, signal === null ? `exit code ${code}` : `signal ${signal}`),
    );
    this.changed();
  }

  private ended(processes: SupervisedProcess, child: ChildProcess, how: string): void {
    if (processes.child !== child) return;
    processes.child = undefined;
    if (!this.stopping) {
      const isSteady = performance.now() - processes.startedMs >= (this.options.steadyMs ?? 10_000);
      const pauseMs = isSteady ? this.firstPauseMs : processes.pauseMs;
      processes.pauseMs = Math.min(pauseMs * 2, this.options.longestPauseMs ?? 10_000);
      this.options.onDeath?.(processes.spec.name, how, pauseMs);
      processes.timer = setTimeout(() => this.start(processes), pauseMs);
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
