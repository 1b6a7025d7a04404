import { randomBytes } from 'node:crypto';
import { accessSync, type BigIntStats, constants, fstatSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import { fileCalls, O_PATH } from '../../file-calls.js';
import { OpenFile } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { codeOf } from '../../state/whole-file.js';

/** How a folder is opened: never through a link. */
export const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const MADE_MODE = 0o755;
/** `Parent.replace` creates these. No other program uses such names. */
const TEMPORARY = /^\.sluice-[0-9a-f]{16}\.tmp$/;
/** Those of this process: several appliers may share it, and a folder. */
const namesInUse = new Set<string>();
/** A folder may hold millions of entries, and its owner may create any number of them. */
const MOST_SEARCHED = 100_000;
const MOST_FOLDERS = 10_000;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/** The open folder of a path. Because it stays open, replacing a folder above it has no effect. */
export class Parent {
  constructor(
    private readonly folder: OpenFile,
    /** An absolute path on the node, without links. */
    readonly folderPath: string,
    readonly name: string,
    /** The user who could replace entries of this folder. */
    readonly uid: number,
  ) {}

  /** The path itself, or another name next to it, relative to the open folder. */
  path(name = this.name): string {
    return `/proc/self/fd/${this.folder.fd}/${name}`;
  }

  /** An absolute path on the node, without links. */
  get realPath(): string {
    return joined(this.folderPath, this.name);
  }

  /** `device:inode` of the folder: the same for every path that leads here, until the machine restarts. */
  get identity(): string {
    return identityOf(this.folder);
  }

  /** Whether only root and this process can replace entries of this folder. */
  get isSafe(): boolean {
    const { mode } = fstatSync(this.folder.fd);
    const mayOthers = (mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0;
    return !mayOthers && (this.uid === 0 || this.uid === ownUid());
  }

  /** Whether something is mounted on the entry, so that it can be neither replaced nor removed. */
  get isMountPoint(): boolean {
    const entry = OpenFile.open(this.path(), O_PATH | constants.O_NOFOLLOW);
    try {
      return mountOf(entry) !== mountOf(this.folder);
    } finally {
      entry.close();
    }
  }

  /**
   * Throws if `chattr`, or a file system that is read-only here, prevents a change of the entry. An existing directory
   * is changed in place, and anything else is replaced.
   */
  assertReplaceable(): void {
    const stat = lstatSync(this.path(), { throwIfNoEntry: false });
    const isDirectory = stat?.isDirectory() === true;
    assertWritable(this.path(isDirectory ? this.name : '.'));
    if (!isDirectory) assertUnprotected(this.folder, this.folderPath);
    if (stat === undefined) return;
    const entry = OpenFile.open(this.path(), O_PATH | constants.O_NOFOLLOW);
    try {
      assertUnprotected(entry, this.realPath);
    } finally {
      entry.close();
    }
  }

  /** Throws Refused if the entry belongs to a user to whose files the owner of the folder must not redirect. */
  assertSafeStep(uid: number): void {
    assertSafeStep({ path: this.folderPath, uid: this.uid }, { path: this.realPath, uid });
  }

  /**
   * Opens a folder, and creates it if it does not exist. A new folder belongs to the owner of its parent folder. A
   * folder of root in the folder of another user could be replaced by that user, and would not be entered again.
   * `finish` sets what else a new folder needs, before it gets its name. So a process that is killed leaves no folder
   * that is only half done.
   */
  async makeFolder(mode = MADE_MODE, finish: (folder: OpenFile) => void = () => undefined): Promise<OpenFile> {
    const isThere = lstatSync(this.path(), { throwIfNoEntry: false }) !== undefined;
    const made = isThere ? undefined : await this.make(mode, finish);
    if (made !== undefined) return made;
    const folder = OpenFile.open(this.path(), FOLDER);
    try {
      this.assertSafeStep(fstatSync(folder.fd).uid);
      return folder;
    } catch (error) {
      folder.close();
      throw error;
    }
  }

  /** Undefined if somebody else has created it meanwhile. */
  private async make(mode: number, finish: (folder: OpenFile) => void): Promise<OpenFile | undefined> {
    const isOwn = this.uid === 0 || this.uid === ownUid();
    if (!isOwn && ownUid() !== 0) this.assertSafeStep(ownUid());
    let folder = undefined as OpenFile | undefined;
    try {
      await this.replace(async (temporary) => {
        await mkdir(temporary, mode);
        folder = OpenFile.open(temporary, FOLDER);
        // The owner of the parent folder could have replaced it with another folder, whose owner must not change.
        const isNew = fstatSync(folder.fd).uid === ownUid() && readdirSync(`/proc/self/fd/${folder.fd}`).length === 0;
        if (!isNew && !isOwn) throw inTheWay(`${this.realPath}: the new folder was replaced by something else`);
        if (!isOwn) folder.chown(this.uid, fstatSync(this.folder.fd).gid);
        // The process may have a umask.
        if (isNew) folder.chmod(mode);
        finish(folder);
        remember(madeFolders, birthOf(folder));
      });
      return folder;
    } catch (error) {
      folder?.close();
      if (!['EEXIST', 'ENOTEMPTY'].includes(codeOf(error))) throw error;
      return undefined;
    }
  }

  /**
   * Puts something new in the place of the entry. `create` makes it next to the entry, under a name that nobody can
   * guess: everybody who may write to the folder, as in `/tmp`, could otherwise occupy that name.
   */
  async replace(create: (temporary: string) => Promise<void>): Promise<void> {
    await this.removeLeftovers();
    // A temporary file could be created in an append-only folder, but neither renamed nor removed.
    assertUnprotected(this.folder, this.folderPath);
    const name = `.sluice-${randomBytes(8).toString('hex')}.tmp`;
    const temporary = this.path(name);
    namesInUse.add(name);
    try {
      await create(temporary);
      await rename(temporary, this.path());
    } catch (error) {
      // On a full disk, a partly written file would prevent every other write.
      await removeIfPossible(temporary);
      throw error;
    } finally {
      namesInUse.delete(name);
    }
    await this.sync();
  }

  /**
   * Removes what killed processes left in the folder, once in the life of this process. What cannot be removed stays:
   * it may be there to stop the applier.
   */
  async removeLeftovers(): Promise<void> {
    const folder = birthOf(this.folder);
    if (searchedFolders.has(folder)) return;
    remember(searchedFolders, folder);
    try {
      let count = 0;
      for await (const { name } of await opendir(this.path('.'))) {
        if (++count > MOST_SEARCHED) return;
        if (TEMPORARY.test(name) && !namesInUse.has(name)) await removeIfPossible(this.path(name));
      }
    } catch {
      // As with NFS, root may not be allowed to read it.
    }
  }

  sync(): Promise<void> {
    return this.folder.sync();
  }

  close(): void {
    this.folder.close();
  }
}

/** Whether this process has the permission is found later: it may only need to be the owner. */
function assertWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    if (codeOf(error) === 'EROFS') throw error;
  }
}

function assertUnprotected(file: OpenFile, path: string): void {
  const calls = fileCalls();
  const protection = typeof calls === 'string' ? undefined : calls.protection(file.fd);
  if (protection === undefined) return;
  const letter = protection === 'immutable' ? 'i' : 'a';
  throw inTheWay(
    `${path} is ${protection} (chattr +${letter}), so nothing can be replaced there: run chattr -${letter} ${path}`,
  );
}

const removeIfPossible = (path: string): Promise<void> =>
  unlink(path)
    .catch((error: unknown) => (['EISDIR', 'EPERM'].includes(codeOf(error)) ? rmdir(path) : undefined))
    .catch(() => undefined);

/** The folders that were searched for leftovers of killed processes. */
const searchedFolders = new Set<string>();
/** The folders that this process has created. */
const madeFolders = new Set<string>();

function remember(folders: Set<string>, folder: string): void {
  if (folders.size >= MOST_FOLDERS) folders.clear();
  folders.add(folder);
}

/** A new folder may have the inode of one that was removed, so the time is needed as well. */
function birthOf(folder: OpenFile): string {
  const { dev, ino, birthtimeNs } = fstatSync(folder.fd, { bigint: true });
  return `${dev}:${ino}:${birthtimeNs}`;
}

/** Whether it is the folder with this identity, or one that this process has created. */
export const isSameOrMade = (folder: OpenFile, identity: string): boolean =>
  identityOf(folder) === identity || madeFolders.has(birthOf(folder));

/** The mount through which it was opened. Its device does not tell, because a file may be mounted on another one. */
const mountOf = ({ fd }: OpenFile): string | undefined =>
  /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];

export interface OwnedPath {
  readonly path: string;
  readonly uid: number;
}

/** Throws Refused if the first belongs to a user who could make it lead to something of somebody else. */
export function assertSafeStep(from: OwnedPath, to: OwnedPath): void {
  if (from.uid === 0 || from.uid === to.uid) return;
  throw inTheWay(
    `${from.path} belongs to user ${from.uid}, who could make it lead anywhere, and it leads to ${to.path}, which belongs to user ${to.uid}: make both belong to one user`,
  );
}

const identityOf = (folder: OpenFile): string => identityIn(fstatSync(folder.fd, { bigint: true }));
/** `device:inode`. */
export const identityIn = ({ dev, ino }: BigIntStats): string => `${dev}:${ino}`;

export const joined = (folder: string, name: string): string => (folder === '/' ? `/${name}` : `${folder}/${name}`);
const ownUid = (): number => process.geteuid?.() ?? 0;

/** What exists on this machine is not an error in the config. */
export const inTheWay = (message: string): RefusedError => new RefusedError('node', message);
