import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Guard } from '#libs/process';

/** The folder of package.json, both in the sources and in dist. */
export const ROOT = rootAbove(__dirname);
export const SLUICE = join(ROOT, 'bin', 'sluice');
/** Longer than a clean shutdown takes. After that, a process is killed. */
const GRACE_MS = 8_000;

/**
 * Processes that a test starts, ends, kills and freezes by name. They are not restarted. They end with the test, even
 * if it is killed.
 */
export class Processes {
  private readonly children = new Map<string, ChildProcess>();
  private readonly guard = new Guard();

  constructor(
    private readonly logs: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  /** Runs `sluice …args` under this name, or another Node.js program, with additional environment variables. */
  start(
    name: string,
    args: readonly string[],
    { program = SLUICE, env = {} }: { readonly program?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): void {
    if (this.isRunning(name)) throw new Error(`${name} runs already`);
    const log = openSync(join(this.logs, `${name}.log`), 'a');
    const child = spawn(process.execPath, [program, ...args], {
      env: { ...this.env, ...env },
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    this.children.set(name, child);
    this.guard.watch([...this.children.values()].filter(isAlive).map(({ pid }) => pid as number));
  }

  isRunning(name: string): boolean {
    const child = this.children.get(name);
    return child !== undefined && isAlive(child);
  }

  /** The names of all processes that were ever started. */
  get names(): readonly string[] {
    return [...this.children.keys()];
  }

  /** Undefined if it does not run. */
  pid(name: string): number | undefined {
    const child = this.children.get(name);
    return child !== undefined && isAlive(child) ? child.pid : undefined;
  }

  /** The running processes, with their pids. */
  get pids(): ReadonlyMap<string, number> {
    return new Map(
      [...this.children].filter(([, child]) => isAlive(child)).map(([name, child]) => [name, child.pid as number]),
    );
  }

  /** Sends SIGTERM, and waits until it has ended. */
  stop(name: string): Promise<void> {
    return end(this.child(name), 'SIGTERM');
  }

  /** kill -9, and waits until it has ended. */
  kill(name: string): Promise<void> {
    return end(this.child(name), 'SIGKILL');
  }

  /** Stops it with SIGSTOP until it is thawed. */
  freeze(name: string): void {
    this.child(name).kill('SIGSTOP');
  }

  thaw(name: string): void {
    this.child(name).kill('SIGCONT');
  }

  async stopAll(): Promise<void> {
    for (const child of this.children.values()) if (isAlive(child)) child.kill('SIGCONT');
    await Promise.all([...this.children.values()].map((child) => end(child, 'SIGTERM')));
    this.guard.close();
  }

  private child(name: string): ChildProcess {
    const child = this.children.get(name);
    if (child === undefined) throw new Error(`nobody started ${name}`);
    return child;
  }
}

const isAlive = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (!isAlive(child)) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill(signal);
  });
}

function rootAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootAbove(dirname(folder));
}
