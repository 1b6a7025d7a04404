import { existsSync } from 'node:fs';
import { chmod, lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CONFIGS } from './own-file.js';
import { StateError } from './state-error.js';

const PRIVATE = 0o700;
const OTHERS_WRITE = 0o022;

/**
 * Makes the folder, or checks an existing one: a user who can write to it can make a rollback write anything. Closes a
 * state folder to other users. Throws StateError if it belongs to another user, holds a file of another user, or is a
 * folder for other things that other users may write to.
 */
export async function makePrivate(path: string): Promise<void> {
  await makeFolders(path);
  const names = await readdir(path);
  const { uid, mode } = await stat(path);
  refuseOther(path, uid);
  for (const name of names) {
    const entry = await lstat(join(path, name)).catch(() => undefined);
    if (entry !== undefined) refuseOther(join(path, name), entry.uid);
  }
  const isOurs = uid === process.geteuid?.() && (names.length === 0 || names.includes(CONFIGS));
  if (isOurs && (mode & OTHERS_WRITE) !== 0) await chmod(path, PRIVATE);
  if (((await stat(path)).mode & OTHERS_WRITE) !== 0)
    throw new StateError(
      path,
      'other users may write to this folder, and could make a rollback write anything: give the applier its own folder with --state, such as a new subfolder of this one',
    );
}

/** The superuser can do everything anyway. */
function refuseOther(path: string, uid: number): void {
  const own = process.geteuid?.();
  if (uid === own || uid === 0) return;
  throw new StateError(
    path,
    `this belongs to the user ${uid}, and the applier runs as ${own}: that user could make a rollback write anything. Check what is in the state folder, then run chown -R ${own} on it, or give the applier its own folder with --state`,
  );
}

/** Node.js says that there is no such folder if the file system is read-only, so one mkdir gives the real error. */
async function makeFolders(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: PRIVATE });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    let missing = path;
    while (!existsSync(dirname(missing))) missing = dirname(missing);
    await mkdir(missing, { mode: PRIVATE });
    throw error;
  }
}
