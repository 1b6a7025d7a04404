import { createHash } from 'node:crypto';
import { constants, fstatSync, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { mkdir, rename, rmdir, unlink } from 'node:fs/promises';
import { letOthersGoOn, OpenFile } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { codeOf, isMissing } from '../../state/whole-file.js';

const ROOT = constants.O_RDONLY | constants.O_DIRECTORY;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** As the kernel has it. */
const MOST_LINKS = 40;
const MADE_MODE = 0o755;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/** The folder of a path, held open, so that nothing that is swapped in above it leads elsewhere. */
export class Parent {
  constructor(
    private readonly folder: OpenFile,
    /** As an absolute path of the node, without links. */
    readonly folderPath: string,
    readonly name: string,
    /** Who could put something else here. */
    readonly uid: number,
  ) {}

  /** The path itself, or another name next to it, reached through the open folder. */
  path(name = this.name): string {
    return `/proc/self/fd/${this.folder.fd}/${name}`;
  }

  /** As an absolute path of the node, without links. */
  get realPath(): string {
    return joined(this.folderPath, this.name);
  }

  /** `device:inode` of the folder: the same for every path that leads here, until the machine restarts. */
  get identity(): string {
    return identityOf(this.folder);
  }

  /** Nobody but root and this process can put something else in the place of what is here. */
  get isSafe(): boolean {
    const { mode } = fstatSync(this.folder.fd);
    const mayOthers = (mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0;
    return !mayOthers && (this.uid === 0 || this.uid === ownUid());
  }

  /** Throws Refused when what is here belongs to somebody to whom the owner of the folder must not lead. */
  assertSafeStep(uid: number): void {
    assertSafeStep({ path: this.folderPath, uid: this.uid }, { path: this.realPath, uid });
  }

  /**
   * Opens a folder that is made if there is none. It belongs to who owns the folder around it: one of root's in a
   * folder of somebody else could be replaced by them, and would not be entered again.
   */
  async makeFolder(mode = MADE_MODE): Promise<OpenFile> {
    if (lstatSync(this.path(), { throwIfNoEntry: false }) === undefined) {
      await (this.uid === 0 || this.uid === ownUid() ? this.makeOwn(mode) : this.makeTheirs(mode));
      await this.sync();
    }
    const folder = OpenFile.open(this.path(), FOLDER);
    try {
      this.assertSafeStep(fstatSync(folder.fd).uid);
      return folder;
    } catch (error) {
      folder.close();
      throw error;
    }
  }

  private async makeOwn(mode: number): Promise<void> {
    await mkdir(this.path(), mode).catch(unlessThere);
    const made = OpenFile.open(this.path(), FOLDER);
    // The process may have a umask.
    if (fstatSync(made.fd).uid === ownUid()) made.chmod(mode);
    made.close();
  }

  /** It has its owner before it has its name. */
  private async makeTheirs(mode: number): Promise<void> {
    if (ownUid() !== 0) return this.assertSafeStep(ownUid());
    const temporary = await this.freeTemporary();
    await mkdir(temporary, mode);
    const made = OpenFile.open(temporary, FOLDER);
    try {
      // Its owner could have put another one there, which must not be given to them.
      const isNew = fstatSync(made.fd).uid === 0 && readdirSync(`/proc/self/fd/${made.fd}`).length === 0;
      if (!isNew) throw inTheWay(`${this.realPath}: the new folder was replaced by something else`);
      made.chown(this.uid, fstatSync(this.folder.fd).gid);
      made.chmod(mode);
    } finally {
      made.close();
    }
    await rename(temporary, this.path()).catch(unlessThere);
  }

  /** The same name every time, so that what a killed process left behind is found and removed. */
  async freeTemporary(): Promise<string> {
    const temporary = this.path(`.sluice-${createHash('sha256').update(this.name).digest('hex').slice(0, 16)}.tmp`);
    // Looked for first: on a file system that is read-only nothing can be unlinked, not even what is not there.
    const left = lstatSync(temporary, { throwIfNoEntry: false });
    if (left !== undefined) await (left.isDirectory() ? rmdir(temporary) : unlink(temporary)).catch(unlessGone);
    return temporary;
  }

  sync(): Promise<void> {
    return this.folder.sync();
  }

  close(): void {
    this.folder.close();
  }
}

const unlessThere = (error: unknown): void => {
  if (!['EEXIST', 'ENOTEMPTY'].includes(codeOf(error))) throw error;
};
const unlessGone = (error: unknown): void => {
  if (!isMissing(error)) throw error;
};

/**
 * What there is on the way to a path: its open parent, or the folders that are missing. All paths are absolute paths of
 * the node, without links.
 */
export type Way = WayEnd &
  ({ readonly parent: Parent; readonly made: boolean } | { readonly missing: readonly string[] });

interface WayEnd {
  /** The folders above that exist. */
  readonly above: readonly string[];
  readonly real: string;
  /** The same for every path that leads to the same place. */
  readonly place: string;
}

export interface WalkOptions {
  /** Makes the folders that are missing. */
  readonly make?: boolean;
  /** Follows a link at the path itself, too. */
  readonly follow?: boolean;
}

/**
 * The parts of an absolute path. Throws Refused for what is no path inside the root: `..` is refused wherever it leads,
 * because what it means depends on links.
 */
export function partsOf(path: unknown): readonly string[] {
  if (typeof path !== 'string' || !path.startsWith('/')) throw content(`path ${JSON.stringify(path)} is not absolute`);
  if (path.includes('\0')) throw content(`path ${JSON.stringify(path)} has a NUL character`);
  const parts = segmentsOf(path);
  if (parts.includes('..')) throw content(`path ${path} has "..", which may lead outside the root`);
  if (parts.length === 0) throw content(`path ${path} is the root itself`);
  return parts;
}

/** One spelling of a path, for keys; texts that are no path are their own. */
export const normalized = (path: unknown): string =>
  typeof path === 'string' ? `/${segmentsOf(path).join('/')}` : String(path);

const segmentsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/**
 * Opens the parent of a path, folder by folder, as systemd's `chase()` does with `CHASE_SAFE`:
 *
 * 1 A link is followed by hand, and means what it means inside the root: an absolute one starts there, and `..` does
 *   not lead above it.
 * 2 What belongs to a user other than root never leads to what belongs to somebody else: that user could point it
 *   anywhere.
 *
 * Throws Refused('node') for what breaks 2, for a link to nothing, and for what is no folder.
 */
export async function wayTo(
  root: string,
  path: string,
  { make = false, follow = false }: WalkOptions = {},
): Promise<Way> {
  const todo = [...partsOf(path)];
  await letOthersGoOn();
  const walk = new Walk(root, path);
  try {
    // `await` keeps the folders open until then.
    return await walk.to(todo, make, follow);
  } finally {
    walk.close();
  }
}

interface Stand {
  readonly path: string;
  readonly uid: number;
}
interface Folder extends Stand {
  readonly file: OpenFile;
  readonly name: string;
}

class Walk {
  /** From the root to where the walk stands; all open. */
  private readonly folders: Folder[];
  /** What led here last: a folder, or a link. */
  private from: Stand;
  private links = 0;
  private made = false;
  /** With no more parts left than that, the target of the last link has been reached. */
  private partsAfterLink = Infinity;
  private lastLink = '';

  constructor(
    root: string,
    private readonly path: string,
  ) {
    const file = OpenFile.open(root, ROOT);
    this.folders = [{ file, name: '', path: '/', uid: fstatSync(file.fd).uid }];
    this.from = this.top;
  }

  async to(todo: string[], make: boolean, follow: boolean): Promise<Way> {
    for (;;) {
      const part = todo.shift();
      if (part === undefined) return this.itself();
      if (part === '..') {
        this.up();
        continue;
      }
      const child = this.child(part);
      if (todo.length === 0) {
        if (!follow || !this.followed(child, todo)) return this.arrived(part);
        continue;
      }
      const missing = await this.enter(child, todo, make);
      if (missing) return this.missing([part, ...todo]);
    }
  }

  close(): void {
    for (const { file } of this.folders) file.close();
  }

  private get top(): Folder {
    return this.folders.at(-1) as Folder;
  }

  private child(name: string): Parent {
    const { file, path } = this.top;
    return new Parent(file, path, name, this.from.uid);
  }

  private up(): void {
    if (this.folders.length > 1) this.folders.pop()?.file.close();
    this.step(this.top);
  }

  private step(to: Stand): void {
    assertSafeStep(this.from, to);
    this.from = to;
  }

  /** True when there is no such folder, and none is to be made. */
  private async enter(child: Parent, todo: string[], make: boolean): Promise<boolean> {
    const path = joined(this.top.path, child.name);
    let file: OpenFile;
    try {
      file = OpenFile.open(child.path(), FOLDER);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'ENAMETOOLONG') throw content(`${path}: the name is too long`);
      if (code === 'ENOTDIR' || code === 'ELOOP') {
        if (this.followed(child, todo)) return false;
        throw inTheWay(`${path} is not a directory`);
      }
      if (!isMissing(error)) throw error;
      if (todo.length >= this.partsAfterLink)
        throw inTheWay(`${this.lastLink} is a symbolic link whose target does not exist`);
      if (!make) return true;
      this.made = true;
      file = await child.makeFolder();
    }
    const folder = { file, name: child.name, path, uid: fstatSync(file.fd).uid };
    this.folders.push(folder);
    this.step(folder);
    return false;
  }

  /** Puts what a link says before what is left to do. False where there is no link. */
  private followed(child: Parent, todo: string[]): boolean {
    const stat = lstatSync(child.path(), { throwIfNoEntry: false });
    if (stat?.isSymbolicLink() !== true) return false;
    const path = joined(this.top.path, child.name);
    if (++this.links > MOST_LINKS) throw inTheWay(`${this.path}: too many symbolic links`);
    this.step({ path, uid: stat.uid });
    const target = readlinkSync(child.path());
    if (target.startsWith('/')) {
      while (this.folders.length > 1) this.folders.pop()?.file.close();
      this.step(this.top);
    }
    this.partsAfterLink = Math.min(this.partsAfterLink, todo.length);
    this.lastLink = path;
    todo.unshift(...segmentsOf(target));
    return true;
  }

  /** A link led to a folder that stands above. */
  private itself(): Way {
    const { name, file } = this.top;
    if (name === '') throw inTheWay(`${this.path} leads to the root itself`);
    this.folders.pop();
    file.close();
    this.from = this.top;
    return this.arrived(name);
  }

  private arrived(name: string): Way {
    const { file, path } = this.folders.pop() as Folder;
    const parent = new Parent(file, path, name, this.from.uid);
    const place = `${parent.identity}/${name}`;
    return { parent, above: this.above(path), made: this.made, real: parent.realPath, place };
  }

  private missing(left: readonly string[]): Way {
    const { path, file } = this.top;
    const missing = left.slice(0, -1).map((_, i) => joined(path, left.slice(0, i + 1).join('/')));
    const rest = left.join('/');
    return { missing, above: this.above(path), real: joined(path, rest), place: `${identityOf(file)}/${rest}` };
  }

  private above(path: string): readonly string[] {
    const parts = segmentsOf(path);
    return parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}`);
  }
}

function assertSafeStep(from: Stand, to: Stand): void {
  if (from.uid === 0 || from.uid === to.uid) return;
  throw inTheWay(
    `${from.path} belongs to user ${from.uid}, who could make it lead anywhere, and it leads to ${to.path}, which belongs to user ${to.uid}: give both to one user`,
  );
}

function identityOf(folder: OpenFile): string {
  const { dev, ino } = fstatSync(folder.fd, { bigint: true });
  return `${dev}:${ino}`;
}

const joined = (folder: string, name: string): string => (folder === '/' ? `/${name}` : `${folder}/${name}`);
const ownUid = (): number => process.geteuid?.() ?? 0;

const content = (message: string): RefusedError => new RefusedError('content', message);
/** What exists on this machine is not the config's fault. */
const inTheWay = (message: string): RefusedError => new RefusedError('node', message);
