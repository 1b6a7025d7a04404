import { randomUUID } from 'node:crypto';
import { link, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startOf, type ProcessId } from '../process-table.js';
import { readOwn } from './own-file.js';
import { Reserve } from './reserve.js';
import { StateError } from './state-error.js';
import { codeOf, isMissing } from './whole-file.js';

/** Locks that this process holds. Its own pid does not distinguish it from another applier in the process. */
const heldLocks = new Set<string>();
const TRIES = 5;

const POLL_MS = 200;
/** A guard holds the folder only while it rolls back. */
const GUARD_WAIT_MS = 120_000;
/** After SIGKILL, a process is still there until the kernel has freed its memory and files. */
const DYING_WAIT_MS = 5_000;

/** The process that holds the state folder; undefined if none is alive. */
export function holderOf(folder: string): ProcessId | undefined {
  const path = join(folder, 'lock');
  try {
    return aliveProcess(path, readOwn(path));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Takes the state folder for one applier. The lock of a dead process is taken over. The lock of a guard is waited for,
 * because the guard does what this applier would have to do first. The lock of another process is waited for for a
 * moment, because the process may have been killed just now. Returns a function that frees it.
 */
export async function lockFolder(folder: string, isGuard = false): Promise<() => Promise<void>> {
  const path = join(folder, 'lock');
  const own = join(folder, `lock.${randomUUID()}`);
  const text = JSON.stringify({ pid: process.pid, started: startOf(process.pid), ...(isGuard ? { guard: true } : {}) });
  try {
    // After a kill on a full disk, the applier must start to finish the rollback.
    await new Reserve(folder).lend(() => writeFile(own, text, { mode: 0o600 }));
    for (let tries = 0, waitedMs = 0; tries < TRIES; tries++) {
      for (; waitedMs < waitMs(path, isGuard); waitedMs += POLL_MS)
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (await linked(own, path)) {
        heldLocks.add(path);
        return async () => {
          heldLocks.delete(path);
          await unlink(path).catch(() => undefined);
        };
      }
      await removeStale(path, folder);
    }
  } finally {
    await unlink(own).catch(() => undefined);
  }
  throw inUse(folder, 'appliers that are starting at the same moment');
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

/**
 * Moves the lock away if its process is dead. Removes only the lock that was checked. If another process
 * has taken it meanwhile, puts it back.
 */
async function removeStale(path: string, folder: string): Promise<void> {
  const owner = readText(path);
  if (owner === undefined) return;
  const holder = aliveProcess(path, owner);
  if (holder !== undefined) throw inUse(folder, `process ${holder.pid}`);
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  if (readText(aside) !== owner) await linked(aside, path);
  await unlink(aside);
}

/** How long it is worth waiting for the holder of a lock, in all. */
function waitMs(path: string, isGuard: boolean): number {
  try {
    const text = readOwn(path);
    const holder = aliveProcess(path, text);
    if (holder === undefined) return 0;
    const isHeldByGuard = (JSON.parse(text) as { readonly guard?: unknown }).guard === true;
    if (isHeldByGuard && !isGuard) return GUARD_WAIT_MS;
    return holder.pid === process.pid ? 0 : DYING_WAIT_MS;
  } catch {
    return 0;
  }
}

function aliveProcess(path: string, text: string): ProcessId | undefined {
  let lock: { readonly pid?: unknown; readonly started?: unknown };
  try {
    lock = (JSON.parse(text) as typeof lock | null) ?? {};
  } catch {
    return undefined; // a torn lock: its writer died before linking it
  }
  const { pid, started } = lock;
  if (typeof pid !== 'number' || typeof started !== 'string') return undefined;
  if (pid === process.pid) return heldLocks.has(path) ? { pid, started } : undefined;
  return started !== '' && startOf(pid) === started ? { pid, started } : undefined;
}

function readText(path: string): string | undefined {
  try {
    return readOwn(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const inUse = (folder: string, by: string): StateError =>
  new StateError(
    join(folder, 'lock'),
    `the state folder is in use by ${by}: two appliers must not share one. Stop the other one, or give this one its own folder with --state`,
  );
