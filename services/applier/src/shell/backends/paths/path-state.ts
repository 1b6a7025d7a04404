import { type BigIntStats, constants, fstatSync, lstatSync, readlinkSync } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileCalls, type Xattrs } from '../../file-calls.js';
import { type OpenFile, withOpen } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { freeBytesIn } from '../../state/free-space.js';
import { codeOf } from '../../state/whole-file.js';
import { identityIn, type Parent } from './parent.js';
import { resolvePath } from './rooted-path.js';

/** What exists at a path. */
export type PathState =
  | { readonly state: 'absent'; readonly missing: readonly string[]; readonly above: readonly string[] }
  | FileState
  | ({ readonly state: 'symlink'; readonly above: readonly string[] } & LinkTarget & Owner)
  | ({
      readonly state: 'directory';
      readonly mode: number;
      /** `device:inode` */
      readonly identity: string;
      readonly above: readonly string[];
    } & Owner)
  | { readonly state: 'other'; readonly above: readonly string[] };

export interface FileState extends Owner {
  readonly state: 'file';
  readonly mode: number;
  readonly size: number;
  /** The number of hard links. */
  readonly links: number;
  readonly above: readonly string[];
}

/** What a link points to. */
export interface LinkTarget {
  readonly target: string;
  /** In base64. Only if it is not UTF-8, because then the text is not the same. */
  readonly bytes?: string;
}

export type Owner = { readonly uid: number; readonly gid: number };

/** The attributes of a file or directory. */
export interface Attributes extends Owner {
  readonly mode: number;
  /** Left out if they cannot be read. */
  readonly xattrs?: Xattrs;
  /** When the content of a file was modified, in nanoseconds since 1970. Left out if it cannot be set. */
  readonly modified?: string;
  /** The file has holes, which take no space on the disk. Others must not get any, such as swap files. */
  readonly sparse?: true;
}

/** The desired attributes of a file or directory. Omitted ones stay unchanged. */
export interface DesiredAttributes extends Partial<Owner> {
  readonly mode?: number;
  /** Whether the file may lose its other hard links, which keep the old content. */
  readonly breaksLinks?: boolean;
}

const MODE = 0o7777;
export const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export interface LookOptions<T> {
  /** Whether to read the content of a file. */
  readonly wants?: (file: FileState) => boolean;
  /** How to read its content. Default: all of it. */
  readonly reads?: (file: OpenFile) => Promise<T>;
  /** Also reads extended attributes and times. */
  readonly full?: boolean;
  /** Whether a link at the path itself is followed. */
  readonly follow?: boolean;
}

/** Attributes that are only read on request. */
export type Extra = Pick<Attributes, 'xattrs' | 'modified' | 'sparse'>;

/** What exists at a path, and its content if that was requested. */
export interface FileRead<T = Buffer> {
  readonly now: PathState;
  readonly content?: T;
  readonly extra?: Extra;
}

/** The same, and where the path leads. */
export interface PathRead<T = Buffer> extends FileRead<T> {
  /** The same for every path that leads to the same place. */
  readonly place: string;
  /** `device:inode` of the existing folders above it, starting with the root. */
  readonly within: readonly string[];
  /** The last link above it; undefined if there is none. */
  readonly link: string | undefined;
  /** Undefined if the parent does not exist. */
  readonly parent?: { readonly identity: string; readonly uid: number; readonly realPath: string };
}

/** The free space at the place where a path leads, and its device. */
export async function spaceAt(
  root: string,
  path: string,
): Promise<{ readonly freeBytes: number; readonly device: bigint }> {
  const way = await resolvePath(root, path);
  if (!('missing' in way)) return closing(way.parent, (parent) => spaceIn(parent.path('.')));
  return spaceIn(join(root, way.above.at(-1) ?? '/'));
}

/** The same for a folder. */
export async function spaceIn(folder: string): Promise<{ readonly freeBytes: number; readonly device: bigint }> {
  const [freeBytes, { dev }] = await Promise.all([freeBytesIn(folder), stat(folder, { bigint: true })]);
  return { freeBytes, device: dev };
}

export async function pathStateAt(root: string, path: string, follow = false): Promise<PathState> {
  return (await fileAt(root, path, { follow })).now;
}

/**
 * What exists at a path, and its content if it is a file and the content is wanted. Both are read from one open file.
 */
export async function fileAt<T = Buffer>(
  root: string,
  path: string,
  options: LookOptions<T> = {},
): Promise<PathRead<T>> {
  const { follow = false } = options;
  const way = await resolvePath(root, path, { follow });
  const { place, within, above, link } = way;
  if ('missing' in way) return { now: { state: 'absent', missing: way.missing, above }, place, within, link };
  return closing(way.parent, async (parent) => ({
    ...(await lookIn(parent, above, options)),
    place,
    within,
    link,
    parent: { identity: parent.identity, uid: parent.uid, realPath: parent.realPath },
  }));
}

export async function lookIn<T = Buffer>(
  parent: Parent,
  above: readonly string[],
  options: LookOptions<T>,
): Promise<FileRead<T>> {
  const now = stateOf(statOf(parent), parent, above);
  const { wants = () => false, full = false } = options;
  if (now.state === 'file' && (full || wants(now)))
    return withOpen(parent.path(), READ, (file) => readFile(file, now, options));
  if (now.state === 'directory' && full)
    return withOpen(parent.path(), FOLDER, async (folder) => ({ now, extra: extraOf(folder) }));
  return { now };
}

async function readFile<T>(
  file: OpenFile,
  state: FileState,
  { wants, reads = readAll<T>, full = false }: LookOptions<T>,
): Promise<FileRead<T>> {
  const stat = fstatSync(file.fd, { bigint: true });
  if (!stat.isFile()) throw new Error('it was replaced while it was read');
  const now: FileState = { ...state, ...ofStat(stat), size: Number(stat.size), links: Number(stat.nlink) };
  return {
    now,
    ...(full ? { extra: extraOf(file, stat) } : {}),
    ...(wants?.(now) === true ? { content: await reads(file) } : {}),
  };
}

/** The default of `reads`, with which `T` is a Buffer. */
const readAll = async <T>(file: OpenFile): Promise<T> => (await file.read()) as T;

/** Without those that cannot be set, if the system calls are not available. */
function extraOf(file: OpenFile, stat?: BigIntStats): Extra {
  const sparse = stat !== undefined && file.hasHoles ? { sparse: true as const } : {};
  const calls = fileCalls();
  if (typeof calls === 'string') return sparse;
  const modified = stat === undefined ? {} : { modified: String(stat.mtimeNs) };
  return { xattrs: calls.xattrs(file.fd), ...modified, ...sparse };
}

function stateOf(stat: BigIntStats | undefined, parent: Parent, above: readonly string[]): PathState {
  if (stat === undefined) return { state: 'absent', missing: [], above };
  const { uid, gid, mode } = ofStat(stat);
  if (stat.isFile())
    return { state: 'file', mode, uid, gid, size: Number(stat.size), links: Number(stat.nlink), above };
  if (stat.isSymbolicLink()) return { state: 'symlink', ...linkTarget(parent.path()), uid, gid, above };
  return stat.isDirectory()
    ? { state: 'directory', mode, uid, gid, identity: identityIn(stat), above }
    : { state: 'other', above };
}

function linkTarget(path: string): LinkTarget {
  const bytes = readlinkSync(path, { encoding: 'buffer' });
  const target = bytes.toString();
  return Buffer.from(target).equals(bytes) ? { target } : { target, bytes: bytes.toString('base64') };
}

const ofStat = ({ uid, gid, mode }: BigIntStats): Owner & { readonly mode: number } => ({
  uid: Number(uid),
  gid: Number(gid),
  mode: Number(mode) & MODE,
});

/** Throws Refused if a directory with something in it is at the path: Sluice never removes it. */
export async function assertEmpty(root: string, path: string): Promise<void> {
  const way = await resolvePath(root, path);
  if ('missing' in way) return;
  await closing(way.parent, async (parent) => {
    if (statOf(parent)?.isDirectory() !== true) return;
    const folder = await opendir(parent.path());
    const isEmpty = (await folder.read()) === null;
    await folder.close();
    if (!isEmpty) throw new RefusedError('node', NOT_EMPTY);
  });
}

export const NOT_EMPTY = 'a directory that is not empty is in the way';

/** The content of a file. Links are not followed. Undefined if there is no file. */
export async function contentAt(root: string, path: string): Promise<Buffer | undefined> {
  return (await fileAt(root, path, { wants: () => true })).content;
}

/** Throws Refused if `chattr` protects what is at the path, or the folder in which it would be created. */
export async function assertReplaceable(root: string, path: string, follow = false): Promise<void> {
  const way = await resolvePath(root, path, { follow });
  if (!('missing' in way)) return closing(way.parent, async (parent) => parent.assertReplaceable());
  const [first] = way.missing.length > 0 ? way.missing : [path];
  if (first !== undefined && first !== path) await assertReplaceable(root, first);
}

/** Whether something is mounted on what is at the path. */
export async function isMountPoint(root: string, path: string, follow = false): Promise<boolean> {
  const way = await resolvePath(root, path, { follow });
  if ('missing' in way) return false;
  return closing(way.parent, async (parent) => statOf(parent) !== undefined && parent.isMountPoint);
}

/** The kernel neither replaces nor removes a mount point. `text`: what that prevents, and the way out. */
export const mounted = (path: string, text: string): RefusedError =>
  new RefusedError('node', `${path} is a mount point, so ${text}`);

export async function closing<T>(parent: Parent, work: (parent: Parent) => Promise<T>): Promise<T> {
  try {
    return await work(parent);
  } catch (error) {
    if (codeOf(error) === 'EBUSY' && parent.isMountPoint)
      throw mounted(parent.realPath, 'it can be neither replaced nor removed: unmount it first');
    if (codeOf(error) === 'ENAMETOOLONG') throw new RefusedError('content', 'the name is too long');
    throw error;
  } finally {
    parent.close();
  }
}

export const statOf = (parent: Parent): BigIntStats | undefined =>
  lstatSync(parent.path(), { throwIfNoEntry: false, bigint: true });
