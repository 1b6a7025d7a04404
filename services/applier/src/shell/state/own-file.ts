import { constants, fstatSync, lstatSync, readdirSync, readFileSync, statSync, type StatsBase } from 'node:fs';
import { join } from 'node:path';
import { OpenFile } from '../open-file.js';
import { StateError } from './state-error.js';

/** Every state folder has this folder. */
export const CONFIGS = 'configs';
/** The folder of contents by their sha256. */
export const ORIGINALS = 'originals';

/** Without waiting: to open a FIFO waits for another process. A link could lead to another file. */
const SAFELY = constants.O_NONBLOCK | constants.O_NOFOLLOW;
/** The errors of `open(2)` for something that is not a file. */
const OF_OTHERS = ['ELOOP', 'EISDIR', 'ENXIO', 'ENODEV', 'EOPNOTSUPP'];

/** Opens a file of the applier in its state folder. Throws StateError if something else is there. */
export function openOwn(path: string, flags: number, mode?: number): OpenFile {
  let file: OpenFile;
  try {
    file = OpenFile.open(path, flags | SAFELY, mode);
  } catch (error) {
    if (OF_OTHERS.includes((error as NodeJS.ErrnoException).code ?? '')) refuseOthers(path, lstatSync(path));
    throw error;
  }
  try {
    refuseOthers(path, fstatSync(file.fd));
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Opens such a file, runs the function, and closes the file, even after an error. */
export async function withOwn<T>(
  path: string,
  flags: number,
  work: (file: OpenFile) => Promise<T>,
  mode?: number,
): Promise<T> {
  const file = openOwn(path, flags, mode);
  try {
    return await work(file);
  } finally {
    file.close();
  }
}

/** The text of a short one of these files. Throws if it does not exist. */
export function readOwn(path: string): string {
  const file = openOwn(path, constants.O_RDONLY);
  try {
    return readFileSync(file.fd, 'utf8');
  } finally {
    file.close();
  }
}

/** The files at the top of a state folder, also while they are being replaced. */
const FILES = [
  /^(journal|journal\.prev|hang|frr|guard)\.json(\.tmp|\.new|\.new\.tmp)?$/,
  /^(lock|reserve|guard|guard\.log)$/,
];

/**
 * Throws StateError if something else is where the applier has its folders, or its files at the top. Opens nothing.
 * What is wrong in the folders is found when it is used: a config is then fetched again.
 */
export function refuseOtherFiles(folder: string): void {
  for (const name of [CONFIGS, ORIGINALS]) {
    const stat = statSync(join(folder, name), { throwIfNoEntry: false });
    if (stat?.isDirectory() === false) throw new StateError(join(folder, name), refusal(stat, 'a folder'));
  }
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (!entry.isFile() && FILES.some((name) => name.test(entry.name))) refuseOthers(path, lstatSync(path));
  }
}

function refuseOthers(path: string, stat: StatsBase<number>): void {
  if (!stat.isFile()) throw new StateError(path, refusal(stat, 'a file'));
}

const refusal = (stat: StatsBase<number>, wanted: string): string =>
  `this is ${wordsFor(stat)}, and the applier has ${wanted} here: move it away. If you have a copy of what was here before, put it back. Then start the applier again`;

function wordsFor(stat: StatsBase<number>): string {
  if (stat.isFile()) return 'a file';
  if (stat.isDirectory()) return 'a directory';
  if (stat.isSymbolicLink()) return 'a symbolic link';
  if (stat.isFIFO()) return 'a FIFO (named pipe)';
  return stat.isSocket() ? 'a socket' : 'a device';
}
