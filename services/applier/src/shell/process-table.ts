import { readdirSync, readFileSync } from 'node:fs';

/** One process, distinguished from a later one with the same pid. */
export interface ProcessId {
  readonly pid: number;
  readonly started: string;
}

/**
 * When a process was started, in ticks of its boot and with the boot's id; empty if there is no such process. A pid
 * alone may be reused.
 */
export function startOf(pid: number): string {
  const fields = statOf(pid);
  if (fields === undefined || fields[0] === 'Z') return '';
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19] ?? ''}`;
  } catch {
    return '';
  }
}

/** All processes that a process has started, directly or not, without this process and its ancestors. */
export function descendantsOf(ancestor: number): readonly ProcessId[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/.test(name) ? parentOf(Number(name)) : undefined;
    if (parent !== undefined) parents.set(Number(name), parent);
  }
  const own = new Set(lineage(process.pid, parents));
  return [...parents.keys()]
    .filter((pid) => !own.has(pid) && lineage(pid, parents).slice(1).includes(ancestor))
    .map((pid) => ({ pid, started: startOf(pid) }));
}

/** Kills a process, if it is still the same one. */
export function killProcess({ pid, started }: ProcessId): void {
  if (started === '' || startOf(pid) !== started) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has already ended
  }
}

/** A process, its parent, and so on. */
function lineage(pid: number, parents: ReadonlyMap<number, number>): readonly number[] {
  const ancestors: number[] = [];
  for (let next: number | undefined = pid; next !== undefined && next > 0 && !ancestors.includes(next);) {
    ancestors.push(next);
    next = parents.get(next);
  }
  return ancestors;
}

/** Undefined if the process is gone. */
export const parentOf = (pid: number): number | undefined => {
  const fields = statOf(pid);
  return fields === undefined ? undefined : Number(fields[1]);
};

/** The fields of `/proc/PID/stat` after the name, which may contain anything. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}
