import { constants, fstatSync, lstatSync, readlinkSync } from 'node:fs';
import { letOthersGoOn, OpenFile } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { codeOf, isMissing } from '../../state/whole-file.js';
import { assertSafeStep, FOLDER, identityIn, inTheWay, joined, type OwnedPath, Parent } from './parent.js';

const ROOT = constants.O_RDONLY | constants.O_DIRECTORY;
/** The limit of the kernel. */
const MOST_LINKS = 40;
/**
 * The result of resolving a path: its open parent, or the folders that are missing. All paths are absolute paths on the
 * node, without links.
 */
export type ResolvedPath = ResolvedPlace &
  ({ readonly parent: Parent; readonly folder: boolean } | { readonly missing: readonly string[] });

interface ResolvedPlace {
  /** The existing folders above it. */
  readonly above: readonly string[];
  /** `device:inode` of these folders, starting with the root. */
  readonly within: readonly string[];
  /** The same for every path that leads to the same place. */
  readonly place: string;
  /** The last link that was followed; undefined if there is none. */
  readonly link: string | undefined;
}

export interface WalkOptions {
  /** Whether missing folders are created. */
  readonly make?: boolean;
  /** Whether a link at the path itself is followed. */
  readonly follow?: boolean;
}

/**
 * The parts of an absolute path. Throws Refused if it is not a path inside the root. `..` is always refused, because
 * its meaning depends on links.
 */
export function partsOf(path: unknown): readonly string[] {
  if (typeof path !== 'string' || !path.startsWith('/')) throw content(`path ${JSON.stringify(path)} is not absolute`);
  if (path.includes('\0')) throw content(`path ${JSON.stringify(path)} has a NUL character`);
  const parts = segmentsOf(path);
  if (parts.includes('..')) throw content(`path ${path} has "..", which may lead outside the root`);
  if (parts.length === 0) throw content(`path ${path} is the root itself`);
  return parts;
}

/** The normalized form of a path, for keys. A text that is not a path is returned unchanged. */
export const normalized = (path: unknown): string =>
  typeof path === 'string' ? `/${segmentsOf(path).join('/')}` : String(path);

export const segmentsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/**
 * Opens the parent of a path, folder by folder, as systemd's `chase()` does with `CHASE_SAFE`:
 *
 * 1 Links are followed in this code, relative to the root: an absolute link starts there, and `..` does not lead
 *   above it.
 * 2 A link or folder of a user other than root must not lead to files of another user, because its owner could redirect
 *   it.
 *
 * Throws Refused('node') if a path violates rule 2, a link has no target, or something on the way is not a folder.
 */
export async function resolvePath(
  root: string,
  path: string,
  { make = false, follow = false }: WalkOptions = {},
): Promise<ResolvedPath> {
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

interface Folder extends OwnedPath {
  readonly file: OpenFile;
  readonly name: string;
  readonly identity: string;
}

function folderOf(file: OpenFile, name: string, path: string): Folder {
  const stat = fstatSync(file.fd, { bigint: true });
  return { file, name, path, uid: Number(stat.uid), identity: identityIn(stat) };
}

function openRoot(root: string): OpenFile {
  try {
    return OpenFile.open(root, ROOT);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const wayOut = 'create it again, mount what belongs there, or start the applier with another --root';
    throw inTheWay(`the root folder of this node, ${root}, does not exist any more: ${wayOut}`);
  }
}

class Walk {
  /** The open folders from the root to the current one. */
  private readonly folders: Folder[];
  /** What led to the current folder: a folder, or a link. */
  private from: OwnedPath;
  private links = 0;
  private folder = false;
  /** When no more than this many parts are left, the target of the last link has been reached. */
  private partsAfterLink = Infinity;
  private lastLink: string | undefined;

  constructor(
    root: string,
    private readonly path: string,
  ) {
    const file = openRoot(root);
    this.folders = [folderOf(file, '', '/')];
    this.from = this.top;
  }

  async to(todo: string[], make: boolean, follow: boolean): Promise<ResolvedPath> {
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

  private step(to: OwnedPath): void {
    assertSafeStep(this.from, to);
    this.from = to;
  }

  /** Returns true if the folder does not exist, and must not be created. */
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
      this.folder = true;
      file = await child.makeFolder();
    }
    const folder = folderOf(file, child.name, path);
    this.folders.push(folder);
    this.step(folder);
    return false;
  }

  /** Prepends the target of a link to the remaining parts. Returns false if there is no link. */
  private followed(child: Parent, todo: string[]): boolean {
    const stat = lstatSync(child.path(), { throwIfNoEntry: false });
    if (stat?.isSymbolicLink() !== true) return false;
    const path = joined(this.top.path, child.name);
    if (++this.links > MOST_LINKS) throw inTheWay(`${this.path}: too many symbolic links`);
    this.step({ path, uid: stat.uid });
    const bytes = readlinkSync(child.path(), { encoding: 'buffer' });
    const target = bytes.toString();
    // As a text, it would lead elsewhere.
    if (!Buffer.from(target).equals(bytes)) throw inTheWay(`${path} is a symbolic link whose target is not UTF-8`);
    if (target.startsWith('/')) {
      while (this.folders.length > 1) this.folders.pop()?.file.close();
      this.step(this.top);
    }
    this.partsAfterLink = Math.min(this.partsAfterLink, todo.length);
    this.lastLink = path;
    todo.unshift(...segmentsOf(target));
    return true;
  }

  /** A link led to one of the folders above. */
  private itself(): ResolvedPath {
    const { name, file } = this.top;
    if (name === '') throw inTheWay(`${this.path} leads to the root itself`);
    this.folders.pop();
    file.close();
    this.from = this.top;
    return this.arrived(name);
  }

  private arrived(name: string): ResolvedPath {
    const within = this.folders.map(({ identity }) => identity);
    const { file, path } = this.folders.pop() as Folder;
    const parent = new Parent(file, path, name, this.from.uid);
    const place = `${parent.identity}/${name}`;
    return { parent, above: this.above(path), within, folder: this.folder, place, link: this.lastLink };
  }

  private missing(left: readonly string[]): ResolvedPath {
    const { path, identity } = this.top;
    const within = this.folders.map((folder) => folder.identity);
    const missing = left.slice(0, -1).map((_, i) => joined(path, left.slice(0, i + 1).join('/')));
    const rest = left.join('/');
    return { missing, above: this.above(path), within, place: `${identity}/${rest}`, link: this.lastLink };
  }

  private above(path: string): readonly string[] {
    const parts = segmentsOf(path);
    return parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}`);
  }
}

const content = (message: string): RefusedError => new RefusedError('content', message);
