import { randomUUID } from 'node:crypto';
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startOf, type ProcessId } from '../process-table.js';
import { Reserve } from './reserve.js';
import { codeOf, isMissing } from './whole-file.js';

/** Locks that this process holds: its own pid says nothing about another applier next to it. */
const held = new Set<string>();
const TRIES = 5;

/** A guard has the folder only while it rolls back. */
const GUARD_POLL_MS = 200;
const GUARD_WAITS = 600;

/** The process that has the state folder; undefined when none is alive. */
export function holderOf(folder: string): ProcessId | undefined {
  const path = join(folder, 'lock');
  try {
    return aliveProcess(path, readFileSync(path, 'utf8'));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Takes the state folder for one applier. The lock of a dead process is taken over, that of a guard is waited for: it
 * ends what this applier would have to end first. Returns what frees it.
 */
export async function lockFolder(folder: string, isGuard = false): Promise<() => Promise<void>> {
  const path = join(folder, 'lock');
  const own = join(folder, `lock.${randomUUID()}`);
  const text = JSON.stringify({ pid: process.pid, started: startOf(process.pid), ...(isGuard ? { guard: true } : {}) });
  try {
    // After a kill on a full disk, the applier must start to finish the rollback.
    await new Reserve(folder).lend(() => writeFile(own, text, { mode: 0o600 }));
    for (let tries = 0, waits = 0; tries < TRIES; tries++) {
      for (; !isGuard && waits < GUARD_WAITS && isHeldByGuard(path); waits++)
        await new Promise((resolve) => setTimeout(resolve, GUARD_POLL_MS));
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

/** Moves the lock away if its process is dead. Only what was judged is removed: a lock taken meanwhile is put back. */
async function removeStale(path: string, folder: string): Promise<void> {
  const judged = await readText(path);
  if (judged === undefined) return;
  const holder = aliveProcess(path, judged);
  if (holder !== undefined) throw inUse(folder, `process ${holder.pid}`);
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

function isHeldByGuard(path: string): boolean {
  try {
    const text = readFileSync(path, 'utf8');
    return (
      (JSON.parse(text) as { readonly guard?: unknown } | null)?.guard === true &&
      aliveProcess(path, text) !== undefined
    );
  } catch {
    return false;
  }
}

function aliveProcess(path: string, text: string): ProcessId | undefined {
  let lock: { readonly pid?: unknown; readonly started?: unknown };
  try {
    lock = (JSON.parse(text) as typeof lock | null) ?? {};
  } catch {
    return undefined; // a torn lock: its writer did not live to link it
  }
  const { pid, started } = lock;
  if (typeof pid !== 'number' || typeof started !== 'string') return undefined;
  if (pid === process.pid) return held.has(path) ? { pid, started } : undefined;
  return started !== '' && startOf(pid) === started ? { pid, started } : undefined;
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));
}

const inUse = (folder: string, by: string): StateError =>
  new StateError(
    join(folder, 'lock'),
    `the state folder is in use by ${by}: two appliers must not share one. Stop the other one, or give this one its own folder with --state`,
  );

/** A state folder that cannot be used as it is. The message names the file and the way out. */
export class StateError extends Error {
  override readonly name = 'StateError';
  constructor(
    readonly file: string,
    message: string,
  ) {
    super(`${file}: ${message}`);
  }
}
