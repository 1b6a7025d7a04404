import { execFileSync, spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The number of kernel ticks per second. */
const TICKS = Number(execFileSync('getconf', ['CLK_TCK']).toString());

/** The CPU time of a process in milliseconds, user and system, including its threads. Its resolution is 10 ms. */
export const cpuMs = (pid: number): number => ticksOf(pid, [13, 14]);

/** The same for all children of this process that have ended and been waited for, and for their children. */
export const endedChildrenCpuMs = (): number => ticksOf(process.pid, [15, 16]);

function ticksOf(pid: number, fields: readonly number[]): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name of the program is in parentheses and may contain spaces.
  const rest = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (fields.reduce((total, field) => total + Number(rest[field - 2]), 0) * 1000) / TICKS;
}

/** Resident memory in MB (10^6 bytes). `peak` is the maximum so far. */
export function memoryMb(pid: number): { readonly rss: number; readonly peak: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): number =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) * 1024) / 1e6;
  return { rss: field('VmRSS'), peak: field('VmHWM') };
}

/** Starts a process. It is ended by its pid when this process exits. */
export function start(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(command, [...args], options);
  const kill = (): void => void (isRunning(child) && child.kill('SIGKILL'));
  process.once('exit', kill);
  child.once('exit', () => process.removeListener('exit', kill));
  return child;
}

export const isRunning = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

/** Asks a process to end, and kills it if it does not end within `graceMs`. */
export function end(child: ChildProcess, graceMs = 8_000): Promise<void> {
  if (!isRunning(child)) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `look` returns something. Throws an error that names `what` if it does not in time. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  timeoutMs: number,
  everyMs = 50,
): Promise<T> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > untilMs) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await sleep(everyMs);
  }
}
