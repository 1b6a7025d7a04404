import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Processes } from '../e2e/processes.js';

/** The state of one process at one moment, as the operating system reports it. */
export interface Sign {
  readonly pid: number;
  /** CPU time since its start. */
  readonly cpuMs: number;
  readonly logLines: number;
}
export type Signs = Readonly<Record<string, Sign>>;

const TICK_MS = 10;

/** The pid, CPU time and number of log lines of every process that a fleet started. */
export function signsOf(processes: Processes, logs: string): Signs {
  return Object.fromEntries(
    processes.names.map((name) => {
      const pid = processes.pid(name);
      return [name, { pid: pid ?? 0, cpuMs: pid === undefined ? 0 : cpuMs(pid), logLines: linesOf(logs, name).length }];
    }),
  );
}

/** The log lines of a process, starting at this line. */
export function linesOf(logs: string, name: string, from = 0): readonly string[] {
  return readFileSync(join(logs, `${name}.log`), 'utf8')
    .split('\n')
    .slice(from)
    .filter((line) => line !== '');
}

function cpuMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return 0;
  }
}
