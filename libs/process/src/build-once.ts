import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Longer than the slowest build seen on two cores, so that the lock of a crashed machine expires. */
const PATIENCE_MS = 15 * 60_000;

/**
 * Builds `path` once, even if several processes ask. `build` returns its result, which is renamed into place. `signal`
 * gives up waiting for another process.
 */
export async function buildOnce(
  path: string,
  say: (text: string) => void,
  what: string,
  build: (folder: string) => Promise<string>,
  signal?: AbortSignal,
): Promise<void> {
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true });
  const untilMs = performance.now() + PATIENCE_MS;
  let isReported = false;
  while (!(await take(lock))) {
    if (!isReported) say(`${what} is being built by another process (${lock}): waiting`);
    isReported = true;
    await sleep(200);
    signal?.throwIfAborted();
    if (existsSync(path)) return;
    if (performance.now() > untilMs)
      throw new Error(`${what}: ${lock} has been held for ${PATIENCE_MS / 60_000} minutes; remove it and try again`);
  }
  try {
    if (existsSync(path)) return;
    say(`building ${what} into ${path}: once, this can take some minutes`);
    const sinceMs = performance.now();
    const folder = await mkdtemp(join(dirname(path), 'build-'));
    try {
      const binary = await build(folder);
      await chmod(binary, 0o755);
      await rename(binary, path);
      say(`built in ${Math.round((performance.now() - sinceMs) / 1_000)} s`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  } finally {
    await rm(lock, { force: true });
  }
}

/** Takes the lock, or frees it if its holder is dead. False means that the caller must try again. */
async function take(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const holder = Number(await readFile(lock, 'utf8').catch(() => ''));
  if (holder > 0 && !isAlive(holder)) await rm(lock, { force: true });
  return false;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
