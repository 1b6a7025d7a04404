import { readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Long enough for another branch, or another version of Node.js, to use its image again. */
const KEPT_MS = 3 * 24 * 3_600_000;
const IMAGE = /^vm-[0-9a-f]{12}$/;
/** An image that was moved aside by a process that died before it removed it. */
const ASIDE = /^vm-[0-9a-f]{12}\.old-\d+$/;
const FAILURE = /^vm-[0-9a-f]{12}\.failed$/;

/** Marks an image as in use. Returns false if it does not exist. */
export async function markUsed(image: string, now = new Date()): Promise<boolean> {
  return utimes(image, now, now).then(
    () => true,
    () => false,
  );
}

/**
 * Removes the other images that were not used for days. A restored machine has its own disk, and does not need its
 * image any more.
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
 * The image is moved aside first. A process that needs it at this moment finds it gone completely, or has marked it as
 * used, and then the image is moved back.
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
