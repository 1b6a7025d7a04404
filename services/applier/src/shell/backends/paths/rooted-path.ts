import { constants } from 'node:fs';
import { lstat, mkdir, realpath } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import { letOthersGoOn, OpenFile } from '../../open-file.js';
import { RefusedError } from '../../ports.js';
import { codeOf, isMissing } from '../../state/whole-file.js';

const ROOT = constants.O_RDONLY | constants.O_DIRECTORY;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const LINKS = 16;
const MADE_MODE = 0o755;

/** The folder of a path, held open, so that nothing that is swapped in above it leads elsewhere. */
export class Parent {
  constructor(
    private readonly folder: OpenFile,
    readonly name: string,
  ) {}

  /** The path itself, or another name next to it, reached through the open folder. */
  path(name = this.name): string {
    return `/proc/self/fd/${this.folder.fd}/${name}`;
  }

  sync(): Promise<void> {
    return this.folder.sync();
  }

  close(): void {
    this.folder.close();
  }
}

/**
 * What there is on the way to a path: its open parent, or the folders (as absolute paths of the node) that are missing.
 */
export type Way =
  | { readonly parent: Parent; readonly above: readonly string[] }
  | { readonly missing: readonly string[]; readonly above: readonly string[] };

/**
 * The parts of an absolute path. Throws Refused for what is no path inside the root: `..` is refused wherever it leads,
 * because what it means depends on links.
 */
export function partsOf(path: unknown): readonly string[] {
  if (typeof path !== 'string' || !path.startsWith('/')) throw content(`path ${JSON.stringify(path)} is not absolute`);
  if (path.includes('\0')) throw content(`path ${JSON.stringify(path)} has a NUL character`);
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw content(`path ${path} has "..", which may lead outside the root`);
  if (parts.length === 0) throw content(`path ${path} is the root itself`);
  return parts;
}

/** One spelling of a path, for keys; texts that are no path are their own. */
export const normalized = (path: unknown): string =>
  typeof path === 'string'
    ? `/${path
        .split('/')
        .filter((part) => part !== '' && part !== '.')
        .join('/')}`
    : String(path);

/**
 * Opens the parent of a path inside the root, folder by folder and never through a link; a link that stays inside is
 * followed by hand.
 */
export async function wayTo(root: string, path: string, make: boolean): Promise<Way> {
  let parts = partsOf(path);
  await letOthersGoOn();
  for (let links = 0; links < LINKS; links++) {
    const way = await walk(root, parts, make);
    if (!('instead' in way)) return way;
    parts = way.instead;
  }
  throw content(`${path}: too many symbolic links`);
}

async function walk(
  root: string,
  parts: readonly string[],
  make: boolean,
): Promise<Way | { readonly instead: readonly string[] }> {
  const name = parts.at(-1) ?? '';
  const folders = parts.slice(0, -1);
  const paths = folders.map((_, i) => `/${folders.slice(0, i + 1).join('/')}`);
  // The root itself may be a link: the person who named it meant where that leads. So the first folder is as safe by
  // its whole path.
  const first = folders[0] === undefined ? undefined : openedIfPossible(`${root}/${folders[0]}`);
  let folder = first ?? OpenFile.open(root, ROOT);
  for (const [i, part] of folders.entries()) {
    if (i === 0 && first !== undefined) continue;
    const child = new Parent(folder, part);
    try {
      const next = await openFolder(child, make);
      if (next === undefined) {
        folder.close();
        return { missing: paths.slice(i), above: paths.slice(0, i) };
      }
      folder.close();
      folder = next;
    } catch (error) {
      const target = await linkTarget(child, root, paths[i] ?? '', error).finally(() => folder.close());
      return { instead: [...target, ...folders.slice(i + 1), name] };
    }
  }
  return { parent: new Parent(folder, name), above: paths };
}

function openedIfPossible(path: string): OpenFile | undefined {
  try {
    return OpenFile.open(path, FOLDER);
  } catch {
    return undefined;
  }
}

async function openFolder(child: Parent, make: boolean): Promise<OpenFile | undefined> {
  try {
    return OpenFile.open(child.path(), FOLDER);
  } catch (error) {
    if (!isMissing(error)) throw error;
    if (!make) return undefined;
  }
  await mkdir(child.path(), MADE_MODE).catch((error: unknown) =>
    codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error),
  );
  await child.sync();
  const made = OpenFile.open(child.path(), FOLDER);
  try {
    made.chmod(MADE_MODE);
    return made;
  } catch (error) {
    made.close();
    throw error;
  }
}

/** Where a link on the way leads, as parts inside the root. Anything else that is in the way is refused. */
async function linkTarget(child: Parent, root: string, path: string, error: unknown): Promise<readonly string[]> {
  const code = codeOf(error);
  if (code === 'ENAMETOOLONG') throw content(`${path}: the name is too long`);
  if (code !== 'ENOTDIR' && code !== 'ELOOP') throw error;
  if (!(await lstat(child.path())).isSymbolicLink()) throw inTheWay(`${path} is not a directory`);
  const target = await realpath(child.path()).catch(() => undefined);
  if (target === undefined) throw inTheWay(`${path} is a symbolic link whose target does not exist`);
  const inside = relative(await realpath(root), target);
  if (inside === '..' || inside.startsWith(`..${sep}`) || inside.startsWith(sep))
    throw inTheWay(`${path} is a symbolic link to ${target}, outside the root`);
  return inside === '' ? [] : inside.split(sep);
}

const content = (message: string): RefusedError => new RefusedError('content', message);
/** What exists on this machine is not the config's fault. */
const inTheWay = (message: string): RefusedError => new RefusedError('node', message);
