import { constants, fstatSync, lchownSync, lstatSync, readlinkSync, type BigIntStats } from 'node:fs';
import { rename, rmdir, symlink, unlink } from 'node:fs/promises';
import { fileCalls, neededFileCalls, O_PATH, type Xattrs } from '../../file-calls.js';
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
  /** How many names it has. */
  readonly links: number;
  readonly above: readonly string[];
}

export type Owner = { readonly uid: number; readonly gid: number };

/** What a file or directory has besides its content. */
export interface Attributes extends Owner {
  readonly mode: number;
  /** Left out where they cannot be read. */
  readonly xattrs?: Xattrs;
  /** When the content of a file was changed, in nanoseconds since 1970; left out where it cannot be set. */
  readonly modified?: string;
}

/** What is asked of a file or directory. What is left out stays as it is. */
export interface AskedAttributes extends Partial<Owner> {
  readonly mode?: number;
  /** The file may lose its other names: they keep the old content. */
  readonly breaksLinks?: boolean;
}

const MODE = 0o7777;
/** Of files and directories that are new. */
const FILE_MODE = 0o644;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export interface LookOptions {
  /** Whether to read the content of a file. */
  readonly wants?: (file: FileState) => boolean;
  /** Reads extended attributes and times, too. */
  readonly full?: boolean;
  /** Follows a link at the path itself. */
  readonly follow?: boolean;
}

/** What exists at a path, and its content where that was asked for. */
export interface FileRead {
  readonly now: PathState;
  readonly content?: Buffer;
  readonly extra?: Pick<Attributes, 'xattrs' | 'modified'>;
}

/** The same, and where the path leads. */
export interface PathRead extends FileRead {
  /** The same for every path that leads there. */
  readonly place: string;
  /** As an absolute path of the node, without links. */
  readonly real: string;
  /** Undefined where there is no parent. */
  readonly parent?: { readonly identity: string; readonly uid: number };
}

export async function pathStateAt(root: string, path: string, follow = false): Promise<PathState> {
  return (await fileAt(root, path, { follow })).now;
}

/** What exists at a path, and its content if it is a file that is wanted. The path is opened once for both. */
export async function fileAt(root: string, path: string, options: LookOptions = {}): Promise<PathRead> {
  const { follow = false } = options;
  const way = await wayTo(root, path, { follow });
  const { place, real, above } = way;
  if ('missing' in way) return { now: { state: 'absent', missing: way.missing, above }, place, real };
  return closing(way.parent, async (parent) => ({
    ...(await lookIn(parent, above, options)),
    place,
    real,
    parent: { identity: parent.identity, uid: parent.uid },
  }));
}

async function lookIn(parent: Parent, above: readonly string[], options: LookOptions): Promise<FileRead> {
  const now = stateOf(statOf(parent), parent, above);
  const { wants = () => false, full = false } = options;
  if (now.state === 'file' && (full || wants(now)))
    return withOpen(parent.path(), READ, (file) => readFile(file, now, options));
  if (now.state === 'directory' && full)
    return withOpen(parent.path(), FOLDER, async (folder) => ({ now, extra: extraOf(folder) }));
  return { now };
}

async function readFile(file: OpenFile, found: FileState, { wants, full = false }: LookOptions): Promise<FileRead> {
  const stat = fstatSync(file.fd, { bigint: true });
  if (!stat.isFile()) throw new Error('it was replaced while it was read');
  const now: FileState = { ...found, ...ofStat(stat), size: Number(stat.size), links: Number(stat.nlink) };
  return {
    now,
    ...(full ? { extra: extraOf(file, stat) } : {}),
    ...(wants?.(now) === true ? { content: await file.read() } : {}),
  };
}

/** Nothing where there are no calls for it: then it can be set neither. */
function extraOf(file: OpenFile, stat?: BigIntStats): Pick<Attributes, 'xattrs' | 'modified'> {
  const calls = fileCalls();
  if (typeof calls === 'string') return {};
  return { xattrs: calls.xattrs(file.fd), ...(stat === undefined ? {} : { modified: String(stat.mtimeNs) }) };
}

function stateOf(stat: BigIntStats | undefined, parent: Parent, above: readonly string[]): PathState {
  if (stat === undefined) return { state: 'absent', missing: [], above };
  const { uid, gid, mode } = ofStat(stat);
  if (stat.isFile())
    return { state: 'file', mode, uid, gid, size: Number(stat.size), links: Number(stat.nlink), above };
  if (stat.isSymbolicLink()) return { state: 'symlink', target: readlinkSync(parent.path()), uid, gid, above };
  return stat.isDirectory() ? { state: 'directory', mode, uid, gid, above } : { state: 'other', above };
}

const ofStat = ({ uid, gid, mode }: BigIntStats): Owner & { readonly mode: number } => ({
  uid: Number(uid),
  gid: Number(gid),
  mode: Number(mode) & MODE,
});

/** The content of a file, never through a link; undefined where there is none. */
export async function contentAt(root: string, path: string): Promise<Buffer | undefined> {
  return (await fileAt(root, path, { wants: () => true })).content;
}

/** Where a thing is put. */
export interface PutOptions {
  /** Only into this folder, by its `Parent.identity`, or one that is made for it. */
  readonly folder?: string | undefined;
  readonly follow?: boolean;
}

/**
 * Replaces a file in one step: a reader sees what was there before or all of this, never a part. What is not asked for
 * stays as it is: owner, mode, ACLs and other extended attributes. Throws Refused for a file with several names, unless
 * it may lose them.
 */
export async function putFile(root: string, path: string, content: Buffer, asked: AskedAttributes = {}): Promise<void> {
  await inParent(root, path, (parent) => replaceIn(parent, content, asked));
}

async function replaceIn(parent: Parent, content: Buffer, asked: AskedAttributes): Promise<void> {
  const { now, extra } = await lookIn(parent, [], { full: true });
  if (now.state !== 'file') return putIn(parent, content, { mode: FILE_MODE, ...given(asked) });
  if (now.links > 1 && asked.breaksLinks !== true) throw severalNames(parent.realPath, now.links);
  const { mode, uid, gid } = now;
  await putIn(parent, content, { mode, uid, gid, ...xattrsIn(extra), ...given(asked) });
}

const xattrsIn = (extra: FileRead['extra']): Pick<Attributes, 'xattrs'> =>
  extra?.xattrs === undefined ? {} : { xattrs: extra.xattrs };

const given = ({ mode, uid, gid }: AskedAttributes): Partial<Attributes> => ({
  ...(mode === undefined ? {} : { mode }),
  ...(uid === undefined ? {} : { uid }),
  ...(gid === undefined ? {} : { gid }),
});

/** The file has other names, which would keep the old content. */
export const severalNames = (path: string, links: number): RefusedError =>
  new RefusedError(
    'node',
    `${path} has ${links} hard links, and the others would keep the old content: if that is right, say \`hardLinks: break\``,
  );

/** Puts a file back as it was. `content` is undefined where only its attributes have changed. */
export async function restoreFile(
  root: string,
  path: string,
  content: Buffer | undefined,
  attributes: Attributes,
  { folder }: PutOptions,
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    if (content !== undefined) return putIn(parent, content, attributes);
    const { now, content: found } = await lookIn(parent, [], { wants: ({ links }) => links > 1 || !parent.isSafe });
    if (found !== undefined) return putIn(parent, found, attributes);
    if (now.state !== 'file') throw new Error('the file is gone');
    await withOpen(parent.path(), READ, (file) => setOn(file, attributes));
  };
  await inParent(root, path, put, { folder });
}

async function putIn(parent: Parent, content: Buffer, attributes: Partial<Attributes>): Promise<void> {
  await makeWay(parent, 'file');
  const temporary = await parent.freeTemporary();
  const fill = async (file: OpenFile): Promise<void> => {
    await file.write(content);
    setAttributes(file, attributes);
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

/** In place: for that, nobody else may be able to put another file there. */
async function setOn(file: OpenFile, attributes: Attributes): Promise<void> {
  setAttributes(file, attributes);
  await file.sync();
}

/** The owner first: a change of it takes privileges away. The mode after ACLs, whose mask is a part of it. */
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
  target: string,
  owner?: Owner,
  options: PutOptions = {},
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    await makeWay(parent, 'file');
    const temporary = await parent.freeTemporary();
    await symlink(target, temporary);
    if (owner !== undefined) giveLink(parent, temporary, owner);
    await rename(temporary, parent.path());
    await parent.sync();
  };
  await inParent(root, path, put, options);
}

/** Who owns the folder could put something of root's in the place of the link, so the link itself is held. */
function giveLink(parent: Parent, path: string, { uid, gid }: Owner): void {
  const made = lstatSync(path);
  if (made.uid === uid && made.gid === gid) return;
  const calls = fileCalls();
  if (typeof calls === 'string' && parent.isSafe) return lchownSync(path, uid, gid);
  const link = OpenFile.open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    const held = fstatSync(link.fd);
    if (!held.isSymbolicLink() || held.ino !== made.ino) throw new Error('the new link was replaced by something else');
    neededFileCalls().setOwner(link.fd, uid, gid);
  } finally {
    link.close();
  }
}

/** A directory with all that is asked for; what it holds stays. */
export async function putDirectory(
  root: string,
  path: string,
  attributes: Partial<Attributes>,
  options: PutOptions = {},
): Promise<void> {
  const put = async (parent: Parent): Promise<void> => {
    await parent.freeTemporary();
    await makeWay(parent, 'directory');
    const folder = await parent.makeFolder(attributes.mode);
    try {
      setAttributes(folder, attributes);
    } finally {
      folder.close();
    }
    await parent.sync();
  };
  await inParent(root, path, put, options);
}

/** Removes what exists at a path; a directory only when it is empty. */
export async function remove(root: string, path: string, follow = false): Promise<void> {
  const way = await wayTo(root, path, { follow });
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
export async function clearTemporary(root: string, path: string, follow = false): Promise<void> {
  const way = await wayTo(root, path, { follow });
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

async function inParent<T>(
  root: string,
  path: string,
  work: (parent: Parent) => Promise<T>,
  { folder, follow = false }: PutOptions = {},
): Promise<T> {
  const way = await wayTo(root, path, { make: true, follow });
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

const statOf = (parent: Parent): BigIntStats | undefined =>
  lstatSync(parent.path(), { throwIfNoEntry: false, bigint: true });

/** In what a file is not the one that is wanted; undefined when it is that. */
export async function fileDiffers(
  root: string,
  path: string,
  content: Buffer,
  asked: AskedAttributes,
): Promise<string | undefined> {
  return difference(await fileAt(root, path, { wants: ({ size }) => size === content.length }), content, asked);
}

/** Puts the file there that is wanted, if it is not there. Either way nothing is left next to it. */
export function ensureFile(root: string, path: string, content: Buffer, asked: AskedAttributes): Promise<void> {
  return inParent(root, path, async (parent) => {
    const found = await lookIn(parent, [], { wants: ({ size }) => size === content.length });
    if (difference(found, content, asked) === undefined) await parent.freeTemporary();
    else await replaceIn(parent, content, asked);
  });
}

function difference({ now, content }: FileRead, wanted: Buffer, asked: AskedAttributes): string | undefined {
  if (now.state !== 'file') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
  if (content === undefined || !wanted.equals(content)) return 'content differs';
  return attributesDiffer(now, asked);
}

/** How a file or directory differs from what is asked of it. */
export function attributesDiffer(
  now: Owner & { readonly mode: number },
  { mode = now.mode, uid = now.uid, gid = now.gid }: AskedAttributes,
): string | undefined {
  if (now.mode !== mode) return `mode ${octal(now.mode)} instead of ${octal(mode)}`;
  if (now.uid !== uid) return `owner ${now.uid} instead of ${uid}`;
  return now.gid === gid ? undefined : `group ${now.gid} instead of ${gid}`;
}

export const octal = (mode: number): string => mode.toString(8).padStart(4, '0');
