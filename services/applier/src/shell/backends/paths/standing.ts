import { createHash } from 'node:crypto';
import { constants, lstatSync, readlinkSync, type Stats } from 'node:fs';
import { lchown, mkdir, readdir, rename, rmdir, symlink, unlink } from 'node:fs/promises';
import { OpenFile, withOpen } from '../../open-file.js';
import { Refused } from '../../ports.js';
import { codeOf, isMissing } from '../../state/whole-file.js';
import { wayTo, type Parent } from './rooted-path.js';

/** What stands at a path. `how` is the rest of it that can be made again. */
export type Standing =
  | { readonly state: 'absent'; readonly missing: readonly string[]; readonly above: readonly string[] }
  | StandingFile
  | {
      readonly state: 'symlink';
      readonly target: string;
      readonly uid: number;
      readonly gid: number;
      readonly above: readonly string[];
    }
  | {
      readonly state: 'directory';
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly above: readonly string[];
    }
  | { readonly state: 'other'; readonly above: readonly string[] };

export interface StandingFile {
  readonly state: 'file';
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly above: readonly string[];
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const MODE = 0o7777;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export async function standingAt(root: string, path: string): Promise<Standing> {
  return (await fileAt(root, path, () => false)).now;
}

/** What stands at a path, and what is in it where that was asked for. */
export interface Found {
  readonly now: Standing;
  readonly content?: Buffer;
}

/** What stands at a path, and what is in it if it is a file that is wanted: one way there for both. */
export async function fileAt(root: string, path: string, wants: (file: StandingFile) => boolean): Promise<Found> {
  const way = await wayTo(root, path, false);
  if ('missing' in way) return { now: { state: 'absent', missing: way.missing, above: way.above } };
  return closing(way.parent, (parent) => lookIn(parent, way.above, wants));
}

async function lookIn(
  parent: Parent,
  above: readonly string[],
  wants: (file: StandingFile) => boolean,
): Promise<Found> {
  const now = standing(statOf(parent), parent, above);
  return now.state === 'file' && wants(now) ? { now, content: await contentIn(parent) } : { now };
}

function standing(stat: Stats | undefined, parent: Parent, above: readonly string[]): Standing {
  if (stat === undefined) return { state: 'absent', missing: [], above };
  const { uid, gid } = stat;
  const mode = stat.mode & MODE;
  if (stat.isFile()) return { state: 'file', mode, uid, gid, size: stat.size, above };
  if (stat.isSymbolicLink()) return { state: 'symlink', target: readlinkSync(parent.path()), uid, gid, above };
  return stat.isDirectory() ? { state: 'directory', mode, uid, gid, above } : { state: 'other', above };
}

/** The content of a file, never through a link. */
export async function contentAt(root: string, path: string): Promise<Buffer> {
  return inParent(root, path, contentIn);
}

const contentIn = (parent: Parent): Promise<Buffer> => withOpen(parent.path(), READ, (file) => file.read());

/** Makes a file in one step: a reader sees what was there before or all of this, never a part. */
export async function putFile(root: string, path: string, content: Buffer, mode: number, owner?: Owner): Promise<void> {
  await inParent(root, path, (parent) => putIn(parent, content, mode, owner));
}

/** The same unless what is found there will do: one way there for both. Either way nothing is left beside it. */
export async function putFileUnless(
  root: string,
  path: string,
  content: Buffer,
  mode: number,
  willDo: (found: Found) => boolean,
): Promise<void> {
  await inParent(root, path, async (parent) => {
    const found = await lookIn(parent, [], ({ size }) => size === content.length);
    if (willDo(found)) await freeTemporary(parent);
    else await putIn(parent, content, mode);
  });
}

async function putIn(parent: Parent, content: Buffer, mode: number, owner?: Owner): Promise<void> {
  await makeWay(parent, 'file');
  const temporary = await freeTemporary(parent);
  const fill = async (file: OpenFile): Promise<void> => {
    await file.write(content);
    if (owner !== undefined) give(file, owner);
    file.chmod(mode);
    await file.sync();
  };
  await withOpen(temporary, CREATE, fill, 0o600);
  await rename(temporary, parent.path());
  await parent.sync();
}

export async function putLink(root: string, path: string, target: string, owner: Owner): Promise<void> {
  await inParent(root, path, async (parent) => {
    if (statOf(parent)?.isDirectory() === true) await removeEmptyFolders(parent.path());
    await makeWay(parent, 'file');
    const temporary = await freeTemporary(parent);
    await symlink(target, temporary);
    await lchown(temporary, owner.uid, owner.gid).catch(notAllowed);
    await rename(temporary, parent.path());
    await parent.sync();
  });
}

export async function putDirectory(root: string, path: string, mode: number, owner?: Owner): Promise<void> {
  await inParent(root, path, async (parent) => {
    await freeTemporary(parent);
    await makeWay(parent, 'directory');
    await mkdir(parent.path(), mode).catch((error: unknown) =>
      codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error),
    );
    const folder = OpenFile.open(parent.path(), FOLDER);
    try {
      if (owner !== undefined) give(folder, owner);
      folder.chmod(mode);
    } finally {
      folder.close();
    }
    await parent.sync();
  });
}

/** Removes what stands at a path; a directory only when it is empty. Nothing there is fine. */
export async function remove(root: string, path: string): Promise<void> {
  const way = await wayTo(root, path, false);
  if ('missing' in way) return;
  await closing(way.parent, async (parent) => {
    await freeTemporary(parent);
    const stat = statOf(parent);
    if (stat === undefined) return;
    if (stat.isDirectory())
      await rmdir(parent.path()).catch((error: unknown) =>
        codeOf(error) === 'ENOTEMPTY' ? undefined : Promise.reject(error),
      );
    else await unlink(parent.path());
    await parent.sync();
  });
}

/** Removes what a process killed in the middle of putting a file there left beside it. */
export async function clearTemporary(root: string, path: string): Promise<void> {
  const way = await wayTo(root, path, false);
  if (!('missing' in way)) await closing(way.parent, async (parent) => void (await freeTemporary(parent)));
}

/** Removes what stands in the way of another kind of thing. */
async function makeWay(parent: Parent, wanted: 'file' | 'directory'): Promise<void> {
  const stat = statOf(parent);
  if (stat === undefined || stat.isDirectory() === (wanted === 'directory')) return;
  if (wanted === 'directory') return unlink(parent.path());
  await rmdir(parent.path()).catch((error: unknown) => {
    throw codeOf(error) === 'ENOTEMPTY' ? new Error('a directory that is not empty stands there now') : error;
  });
}

/** Folders made on the way to what is gone by now: where a link stood once, they were noted under its target. Files stay. */
async function removeEmptyFolders(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await removeEmptyFolders(`${path}/${entry.name}`);
  await rmdir(path).catch((error: unknown) => (codeOf(error) === 'ENOTEMPTY' ? undefined : Promise.reject(error)));
}

/** The same name every time, so that what a killed process left behind is found and removed. */
async function freeTemporary(parent: Parent): Promise<string> {
  const temporary = parent.path(`.sluice-${createHash('sha256').update(parent.name).digest('hex').slice(0, 16)}.tmp`);
  // Looked for first: on a file system that is read-only nothing can be unlinked, not even what is not there.
  if (lstatSync(temporary, { throwIfNoEntry: false }) !== undefined)
    await unlink(temporary).catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));
  return temporary;
}

async function inParent<T>(root: string, path: string, work: (parent: Parent) => Promise<T>): Promise<T> {
  const way = await wayTo(root, path, true);
  if ('missing' in way) throw new Error(`${way.missing.join(', ')} vanished`);
  return closing(way.parent, work);
}

async function closing<T>(parent: Parent, work: (parent: Parent) => Promise<T>): Promise<T> {
  try {
    return await work(parent);
  } catch (error) {
    if (codeOf(error) === 'ENAMETOOLONG') throw new Refused('content', 'the name is too long');
    throw error;
  } finally {
    parent.close();
  }
}

const statOf = (parent: Parent): Stats | undefined => lstatSync(parent.path(), { throwIfNoEntry: false });

function give(file: OpenFile, { uid, gid }: Owner): void {
  try {
    file.chown(uid, gid);
  } catch (error) {
    notAllowed(error);
  }
}

/** Only root may give files away: the running user's ownership is what remains then. */
function notAllowed(error: unknown): void {
  if (codeOf(error) !== 'EPERM') throw error;
}
