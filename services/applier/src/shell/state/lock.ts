import { randomUUID } from 'node:crypto';
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, isMissing } from './whole-file.js';
import { StateError } from './state-error.js';

/** Locks that this process holds: its own pid says nothing about another applier beside it. */
const held = new Set<string>();
const TRIES = 5;

/** Takes the state folder for one applier. The lock of a dead process is taken over. Returns what frees it. */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, 'lock');
  const own = join(folder, `lock.${randomUUID()}`);
  const text = JSON.stringify({ pid: process.pid, started: startOf(process.pid) });
  await writeFile(own, text, { mode: 0o600 });
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      if (await linked(own, path)) {
        held.add(path);
        return async () => {
          held.delete(path);
          await unlink(path).catch(() => undefined);
        };
      }
      await removeStale(path, folder);
    }
  } finally {
    await unlink(own).catch(() => undefined);
  }
  throw inUse(folder, 'others that start at the same moment');
}

async function linked(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Moves the lock away if its process is dead. Only what was judged is removed: a lock taken meanwhile is put back. */
async function removeStale(path: string, folder: string): Promise<void> {
  const judged = await readText(path);
  if (judged === undefined) return;
  const pid = alivePid(path, judged);
  if (pid !== undefined) throw inUse(folder, `process ${pid}`);
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  if ((await readText(aside)) !== judged) await linked(aside, path);
  await unlink(aside);
}

function alivePid(path: string, text: string): number | undefined {
  let lock: { readonly pid?: unknown; readonly started?: unknown };
  try {
    lock = (JSON.parse(text) as typeof lock | null) ?? {};
  } catch {
    return undefined; // a torn lock: whoever wrote it did not live to link it
  }
  if (typeof lock.pid !== 'number') return undefined;
  if (lock.pid === process.pid) return held.has(path) ? lock.pid : undefined;
  const started = startOf(lock.pid);
  return started !== '' && started === lock.started ? lock.pid : undefined;
}

/** When a process was started, in ticks of its boot and with the boot's id; empty when there is no such process. A pid alone is used again. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? '' : `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19] ?? ''}`;
  } catch {
    return '';
  }
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));
}

const inUse = (folder: string, by: string): StateError =>
  new StateError(join(folder, 'lock'), `the state folder is in use by ${by}: two appliers must not share one. Stop the other, or give this one its own folder with --state`);
