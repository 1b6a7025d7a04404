import { constants, fstatSync, lchownSync, lstatSync } from 'node:fs';
import { rmdir, symlink, unlink } from 'node:fs/promises';
import { bytesContent, type Content, fileContent } from '../../content.js';
import { fileCalls, neededFileCalls, O_PATH } from '../../file-calls.js';
import { OpenFile, withOpen } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { codeOf } from '../../state/whole-file.js';
import { comparing, difference } from './path-differences.js';
import {
  type DesiredAttributes,
  type Attributes,
  closing,
  type FileRead,
  lookIn,
  NOT_EMPTY,
  type Owner,
  READ,
  statOf,
} from './path-state.js';
import { isSameOrMade, type Parent } from './parent.js';
import { resolvePath } from './rooted-path.js';

/** The modes of new files and directories. */
const FILE_MODE = 0o644;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Where to create something. */
export interface PutOptions {
  /** Only in this folder, by its `Parent.identity`, or in one that is created for it. */
  readonly folder?: string | undefined;
  readonly follow?: boolean;
}

/** Which directory to change. */
export interface PutDirectoryOptions extends PutOptions {
  /** Only this directory, by its `device:inode`, or one that this process has created. */
  readonly directory?: string | undefined;
}

/** What to remove. */
export interface RemoveOptions extends PutOptions {
  /** Keeps anything but a directory. */
  readonly onlyDirectory?: boolean;
}

/**
 * Replaces a file atomically: a reader sees either the old file or the new one, never a part. Omitted attributes are
 * kept: owner, mode, ACLs and other extended attributes. Throws Refused for a file with several hard links, unless it
 * may lose them.
 */
export async function putFile(
  root: string,
  path: string,
  content: Buffer,
  desired: DesiredAttributes = {},
): Promise<void> {
  await inParent(root, path, (parent) => replaceIn(parent, bytesContent(content), desired));
}

async function replaceIn(parent: Parent, content: Content, desired: DesiredAttributes): Promise<void> {
  const { now, extra } = await lookIn(parent, [], { full: true });
  if (now.state !== 'file') return putIn(parent, content, { mode: FILE_MODE, ...present(desired) });
  if (now.links > 1 && desired.breaksLinks !== true) throw severalNames(parent.realPath, now.links);
  const { mode, uid, gid } = now;
  await putIn(parent, content, { mode, uid, gid, ...xattrsIn(extra), ...present(desired) });
}

const xattrsIn = (extra: FileRead['extra']): Pick<Attributes, 'xattrs'> =>
  extra?.xattrs === undefined ? {} : { xattrs: extra.xattrs };

const present = ({ mode, uid, gid }: DesiredAttributes): Partial<Attributes> => ({
  ...(mode === undefined ? {} : { mode }),
  ...(uid === undefined ? {} : { uid }),
  ...(gid === undefined ? {} : { gid }),
});

/** The file has other hard links, which would keep the old content. Only a File can say that this is intended. */
export const severalNames = (path: string, links: number, isFile = true): RefusedError =>
  new RefusedError(
    'node',
    `${path} has ${links} hard links, and the others would keep the old content: if that is intended, ${isFile ? 'set `hardLinks: break`' : 'remove this one first'}`,
  );

/** Restores a file. `content` is undefined if only its attributes have changed. */
export async function restoreFile(
  root: string,
  path: string,
  content: Content | undefined,
  attributes: Attributes,
  { folder }: PutOptions,
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    if (content !== undefined) return putIn(parent, content, attributes);
    const { now, content: isPut } = await lookIn(parent, [], {
      wants: ({ links }) => links > 1 || !parent.isSafe,
      reads: async (file) => {
        await putIn(parent, fileContent(file), attributes);
        return true;
      },
    });
    if (isPut === true) return;
    if (now.state !== 'file') throw new Error('the file is gone');
    await withOpen(parent.path(), READ, (file) => setOn(file, attributes));
  };
  await inParent(root, path, put, { folder });
}

async function putIn(parent: Parent, content: Content, attributes: Partial<Attributes>): Promise<void> {
  await removeObstacle(parent, 'file');
  const fill = async (file: OpenFile): Promise<void> => {
    await content.writeTo(file, attributes.sparse);
    setAttributes(file, attributes);
    await file.sync();
  };
  await parent.replace((temporary) => withOpen(temporary, CREATE, fill, 0o600));
}

/** Sets the attributes in place, which is safe only if nobody else can put another file there. */
async function setOn(file: OpenFile, attributes: Attributes): Promise<void> {
  setAttributes(file, attributes);
  await file.sync();
}

/**
 * Sets the owner first, because changing it clears privileges. Sets the mode after ACLs, because their mask is a part
 * of it.
 */
function setAttributes(file: OpenFile, { mode, uid, gid, xattrs, modified }: Partial<Attributes>): void {
  const now = fstatSync(file.fd);
  const owner = { uid: uid ?? now.uid, gid: gid ?? now.gid };
  if (owner.uid !== now.uid || owner.gid !== now.gid) file.chown(owner.uid, owner.gid);
  if (xattrs !== undefined) neededFileCalls().setXattrs(file.fd, xattrs);
  if (mode !== undefined) file.chmod(mode);
  if (modified !== undefined) neededFileCalls().setModified(file.fd, BigInt(modified));
}

export async function putLink(
  root: string,
  path: string,
  target: string | Buffer,
  owner?: Owner,
  options: PutOptions = {},
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    await removeObstacle(parent, 'file');
    await parent.replace(async (temporary) => {
      await symlink(target, temporary);
      if (owner !== undefined) chownLink(parent, temporary, owner);
    });
  };
  await inParent(root, path, put, options);
}

/** The owner of the folder could replace the link with a file of root, so the link itself is opened. */
function chownLink(parent: Parent, path: string, { uid, gid }: Owner): void {
  const created = lstatSync(path);
  if (created.uid === uid && created.gid === gid) return;
  const calls = fileCalls();
  if (typeof calls === 'string' && parent.isSafe) return lchownSync(path, uid, gid);
  const link = OpenFile.open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    const opened = fstatSync(link.fd);
    if (!opened.isSymbolicLink() || opened.ino !== created.ino)
      throw new Error('the new link was replaced by something else');
    neededFileCalls().setOwner(link.fd, uid, gid);
  } finally {
    link.close();
  }
}

/** Creates a directory with the desired attributes. Its content is kept. */
export async function putDirectory(
  root: string,
  path: string,
  attributes: Partial<Attributes>,
  { directory, ...options }: PutDirectoryOptions = {},
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    await parent.removeLeftovers();
    await removeObstacle(parent, 'directory');
    const folder = await parent.makeFolder(attributes.mode, (created) => setAttributes(created, attributes));
    try {
      if (directory !== undefined && !isSameOrMade(folder, directory))
        throw new RefusedError(
          'node',
          `the directory ${parent.realPath} was replaced since its owner and mode were saved, so they are not restored: put the right directory there, or set them by hand`,
        );
      setAttributes(folder, attributes);
    } finally {
      folder.close();
    }
    await parent.sync();
  };
  await inParent(root, path, put, options);
}

/** Removes what exists at a path. A directory is removed only if it is empty. */
export async function remove(
  root: string,
  path: string,
  { folder, follow = false, onlyDirectory = false }: RemoveOptions = {},
): Promise<void> {
  const way = await resolvePath(root, path, { follow });
  if ('missing' in way) return;
  await closing(way.parent, async (parent) => {
    await parent.removeLeftovers();
    const stat = statOf(parent);
    if (stat === undefined || (onlyDirectory && !stat.isDirectory())) return;
    assertFolder(parent, folder, `${parent.realPath} is not removed: move it away or remove it by hand`);
    if (stat.isDirectory())
      await rmdir(parent.path()).catch((error: unknown) =>
        codeOf(error) === 'ENOTEMPTY' ? undefined : Promise.reject(error),
      );
    else await unlink(parent.path());
    await parent.sync();
  });
}

/** Removes what a process left next to a path when it was killed while it wrote there. */
export async function removeLeftovers(root: string, path: string, follow = false): Promise<void> {
  const way = await resolvePath(root, path, { follow });
  if (!('missing' in way)) await closing(way.parent, async (parent) => parent.removeLeftovers());
}

/** Removes something of another type that is at the path. */
async function removeObstacle(parent: Parent, kind: 'file' | 'directory'): Promise<void> {
  const stat = statOf(parent);
  if (stat === undefined || stat.isDirectory() === (kind === 'directory')) return;
  if (kind === 'directory') return unlink(parent.path());
  await rmdir(parent.path()).catch((error: unknown) => {
    throw codeOf(error) === 'ENOTEMPTY' ? new Error(NOT_EMPTY) : error;
  });
}

async function inParent<T>(
  root: string,
  path: string,
  work: (parent: Parent) => Promise<T>,
  { folder, follow = false }: PutOptions = {},
): Promise<T> {
  const way = await resolvePath(root, path, { make: true, follow });
  if ('missing' in way) throw new Error(`${way.missing.join(', ')} vanished`);
  return closing(way.parent, (parent) => {
    if (!way.folder)
      assertFolder(parent, folder, 'the original is not restored into it automatically: restore it by hand');
    return work(parent);
  });
}

/** Throws Refused if the original was saved from another folder. Then what is here belongs to somebody else. */
function assertFolder(parent: Parent, folder: string | undefined, consequence: string): void {
  if (folder === undefined || folder === parent.identity) return;
  throw new RefusedError(
    'node',
    `the folder ${parent.folderPath} was replaced since the original was saved, so ${consequence}`,
  );
}

/** Writes the desired file unless it already exists. In either case, removes what killed processes left next to it. */
export function ensureFile(root: string, path: string, content: Content, desired: DesiredAttributes): Promise<void> {
  return inParent(root, path, async (parent) => {
    const reading = await lookIn(parent, [], comparing(content));
    if (difference(reading, desired) === undefined) await parent.removeLeftovers();
    else await replaceIn(parent, content, desired);
  });
}
