import { readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Another branch, or another version of Node.js, may come back to its own within that time. */
const KEPT_MS = 3 * 24 * 3_600_000;
const IMAGE = /^vm-[0-9a-f]{12}$/;
/** One that was moved aside by somebody who did not live to remove it. */
const ASIDE = /^vm-[0-9a-f]{12}\.old-\d+$/;
const FAILURE = /^vm-[0-9a-f]{12}\.failed$/;

/** Says that an image is in use from now on; false where it is not there. */
export async function markUsed(image: string, now = new Date()): Promise<boolean> {
  return utimes(image, now, now).then(
    () => true,
    () => false,
  );
}

/**
 * Removes the images other than this one that nobody has used for days. A machine that was restored has a disk of its
 * own, and needs none of them.
 */
export async function removeOldImages(image: string, nowMs = Date.now()): Promise<readonly string[]> {
  const cache = dirname(image);
  const names = (await readdir(cache).catch(() => [])).filter(
    (name) => name !== basename(image) && [IMAGE, ASIDE, FAILURE].some((form) => form.test(name)),
  );
  const removed = await Promise.all(
    names.map(async (name) => ((await remove(join(cache, name), nowMs)) ? [name] : [])),
  );
  return removed.flat();
}

/**
 * Moved aside first: a process that takes it at this moment either finds it gone as a whole, or has marked it before,
 * and gets it back.
 */
async function remove(path: string, nowMs: number): Promise<boolean> {
  if (!(await isOld(path, nowMs))) return false;
  const aside = ASIDE.test(basename(path)) ? path : `${path}.old-${process.pid}`;
  if (aside !== path && !(await moved(path, aside))) return false;
  if (!(await isOld(aside, nowMs))) {
    await moved(aside, path);
    return false;
  }
  await rm(aside, { recursive: true, force: true });
  return true;
}

const isOld = (path: string, nowMs: number): Promise<boolean> =>
  stat(path).then(
    ({ mtimeMs }) => nowMs - mtimeMs > KEPT_MS,
    () => false,
  );
const moved = (from: string, to: string): Promise<boolean> =>
  rename(from, to).then(
    () => true,
    () => false,
  );
