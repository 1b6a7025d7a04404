import { constants, lstatSync, readlinkSync, type Stats } from 'node:fs';
import { lchown, readdir, rename, rmdir, symlink, unlink } from 'node:fs/promises';
import { OpenFile, withOpen } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { codeOf } from '../../state/whole-file.js';
import { wayTo, type Parent } from './rooted-path.js';

/** What exists at a path. */
export type PathState =
  | { readonly state: 'absent'; readonly missing: readonly string[]; readonly above: readonly string[] }
  | FileState
  | ({ readonly state: 'symlink'; readonly target: string; readonly above: readonly string[] } & Owner)
  | ({ readonly state: 'directory'; readonly mode: number; readonly above: readonly string[] } & Owner)
  | { readonly state: 'other'; readonly above: readonly string[] };

export interface FileState extends Owner {
  readonly state: 'file';
  readonly mode: number;
  readonly size: number;
  readonly above: readonly string[];
}

export type Owner = { readonly uid: number; readonly gid: number };

const MODE = 0o7777;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export async function pathStateAt(root: string, path: string): Promise<PathState> {
  return (await fileAt(root, path, () => false)).now;
}

/** What exists at a path, and its content where that was asked for. */
export interface FileRead {
  readonly now: PathState;
  readonly content?: Buffer;
  /** `Parent.identity`; undefined where there is no parent. */
  readonly folder?: string;
}

/** What exists at a path, and its content if it is a file that is wanted. The path is opened once for both. */
export async function fileAt(root: string, path: string, wants: (file: FileState) => boolean): Promise<FileRead> {
  const way = await wayTo(root, path);
  if ('missing' in way) return { now: { state: 'absent', missing: way.missing, above: way.above } };
  return closing(way.parent, async (parent) => ({
    ...(await lookIn(parent, way.above, wants)),
    folder: parent.identity,
  }));
}

async function lookIn(
  parent: Parent,
  above: readonly string[],
  wants: (file: FileState) => boolean,
): Promise<FileRead> {
  const now = stateOf(statOf(parent), parent, above);
  return now.state === 'file' && wants(now) ? { now, content: await contentIn(parent) } : { now };
}

function stateOf(stat: Stats | undefined, parent: Parent, above: readonly string[]): PathState {
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

/** Where and as whose a thing is put. */
export interface PutOptions {
  readonly owner?: Owner;
  /** Only into this folder, by its `Parent.identity`, or one that is made for it. */
  readonly folder?: string | undefined;
}

/** Makes a file in one step: a reader sees what was there before or all of this, never a part. */
export async function putFile(
  root: string,
  path: string,
  content: Buffer,
  mode: number,
  { owner, folder }: PutOptions = {},
): Promise<void> {
  await inParent(root, path, (parent) => putIn(parent, content, mode, owner), folder);
}

async function putIn(parent: Parent, content: Buffer, mode: number, owner?: Owner): Promise<void> {
  await makeWay(parent, 'file');
  const temporary = await parent.freeTemporary();
  const fill = async (file: OpenFile): Promise<void> => {
    await file.write(content);
    if (owner !== undefined) give(file, owner);
    file.chmod(mode);
    await file.sync();
  };
  try {
    await withOpen(temporary, CREATE, fill, 0o600);
    await rename(temporary, parent.path());
  } catch (error) {
    // On a disk that is full, what was written of it would keep everything else from being written.
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await parent.sync();
}

export async function putLink(
  root: string,
  path: string,
  target: string,
  { owner, folder }: PutOptions = {},
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    if (statOf(parent)?.isDirectory() === true) await removeEmptyFolders(parent.path());
    await makeWay(parent, 'file');
    const temporary = await parent.freeTemporary();
    await symlink(target, temporary);
    if (owner !== undefined) await lchown(temporary, owner.uid, owner.gid).catch(notAllowed);
    await rename(temporary, parent.path());
    await parent.sync();
  };
  await inParent(root, path, put, folder);
}

export async function putDirectory(
  root: string,
  path: string,
  mode: number,
  { owner, folder: home }: PutOptions = {},
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    await parent.freeTemporary();
    await makeWay(parent, 'directory');
    const folder = await parent.makeFolder(mode);
    try {
      if (owner !== undefined) give(folder, owner);
      folder.chmod(mode);
    } finally {
      folder.close();
    }
    await parent.sync();
  };
  await inParent(root, path, put, home);
}

/** Removes what exists at a path; a directory only when it is empty. */
export async function remove(root: string, path: string): Promise<void> {
  const way = await wayTo(root, path);
  if ('missing' in way) return;
  await closing(way.parent, async (parent) => {
    await parent.freeTemporary();
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

/** Removes what a process killed in the middle of putting a file there left next to it. */
export async function clearTemporary(root: string, path: string): Promise<void> {
  const way = await wayTo(root, path);
  if (!('missing' in way)) await closing(way.parent, async (parent) => void (await parent.freeTemporary()));
}

/** Removes what is in the way of another kind of thing. */
async function makeWay(parent: Parent, wanted: 'file' | 'directory'): Promise<void> {
  const stat = statOf(parent);
  if (stat === undefined || stat.isDirectory() === (wanted === 'directory')) return;
  if (wanted === 'directory') return unlink(parent.path());
  await rmdir(parent.path()).catch((error: unknown) => {
    throw codeOf(error) === 'ENOTEMPTY' ? new Error('a directory that is not empty is in the way') : error;
  });
}

/**
 * Folders made on the way to what is gone by now: where a link stood once, they were noted under its target. Files
 * stay.
 */
async function removeEmptyFolders(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await removeEmptyFolders(`${path}/${entry.name}`);
  await rmdir(path).catch((error: unknown) => (codeOf(error) === 'ENOTEMPTY' ? undefined : Promise.reject(error)));
}

async function inParent<T>(
  root: string,
  path: string,
  work: (parent: Parent) => Promise<T>,
  folder?: string,
): Promise<T> {
  const way = await wayTo(root, path, { make: true });
  if ('missing' in way) throw new Error(`${way.missing.join(', ')} vanished`);
  return closing(way.parent, (parent) => {
    if (folder !== undefined && !way.made && folder !== parent.identity)
      throw new RefusedError(
        'node',
        `the folder ${parent.folderPath} was replaced since the original was saved, so the original is not put into it by itself: put it back by hand`,
      );
    return work(parent);
  });
}

async function closing<T>(parent: Parent, work: (parent: Parent) => Promise<T>): Promise<T> {
  try {
    return await work(parent);
  } catch (error) {
    if (codeOf(error) === 'ENAMETOOLONG') throw new RefusedError('content', 'the name is too long');
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

/** In what a file is not the one that is wanted; undefined when it is that. */
export async function fileDiffers(
  root: string,
  path: string,
  wanted: Buffer,
  mode: number,
): Promise<string | undefined> {
  return difference(await fileAt(root, path, ({ size }) => size === wanted.length), wanted, mode);
}

/** Puts the file there that is wanted, if it is not there. Either way nothing is left next to it. */
export function ensureFile(root: string, path: string, wanted: Buffer, mode: number): Promise<void> {
  return inParent(root, path, async (parent) => {
    const found = await lookIn(parent, [], ({ size }) => size === wanted.length);
    if (difference(found, wanted, mode) === undefined) await parent.freeTemporary();
    else await putIn(parent, wanted, mode);
  });
}

function difference({ now, content }: FileRead, wanted: Buffer, mode: number): string | undefined {
  if (now.state !== 'file') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
  if (content === undefined || !wanted.equals(content)) return 'content differs';
  return now.mode === mode ? undefined : `mode ${octal(now.mode)} instead of ${octal(mode)}`;
}

export const octal = (mode: number): string => mode.toString(8).padStart(4, '0');
