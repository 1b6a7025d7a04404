import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_MS = 90_000;

/** One program of the control plane, or a controller. It logs into a file in its working folder. */
export class Program {
  private child: ChildProcess | undefined;

  constructor(
    private readonly folder: string,
    private readonly command: string,
    private readonly args: readonly string[],
    private readonly env: NodeJS.ProcessEnv = {},
  ) {}

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.child?.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  start(): this {
    const log = openSync(this.log, 'a');
    this.child = spawn(this.command, [...this.args], {
      cwd: this.folder,
      env: { ...process.env, ...this.env },
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    this.child.once('error', () => undefined);
    this.child.unref();
    return this;
  }

  kill(): void {
    this.child?.kill('SIGKILL');
  }

  /** Its data is not needed afterwards, so it is killed: an API server takes long to end cleanly. */
  async end(): Promise<void> {
    this.kill();
    while (this.isAlive) await sleep(5);
  }

  /** Waits until it is ready. Throws with the end of its log if it does not become ready in time. */
  async untilReady(isReady: () => Promise<boolean> | boolean, signal?: AbortSignal): Promise<void> {
    const untilMs = performance.now() + READY_MS;
    while (!(await isReady())) {
      signal?.throwIfAborted();
      if (!this.isAlive || performance.now() > untilMs)
        throw new Error(
          `${basename(this.command)} ${this.isAlive ? `is not ready after ${READY_MS / 1_000} s` : 'ended'}:\n${this.logTail()}`,
        );
      await sleep(30);
    }
  }

  hasLogged(words: string): boolean {
    return readFileSync(this.log, 'utf8').includes(words);
  }

  forgetLog(): void {
    truncateSync(this.log);
  }

  logTail(): string {
    return readFileSync(this.log, 'utf8').split('\n').slice(-15).join('\n');
  }

  private get log(): string {
    return join(this.folder, `${basename(this.command)}.log`);
  }
}
