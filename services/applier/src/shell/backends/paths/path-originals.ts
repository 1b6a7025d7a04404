import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { RefusedError, type CheckContext, type Surroundings } from '../../ports.js';
import { sha256 } from '../../state/original-store.js';
import {
  clearTemporary,
  fileAt,
  octal,
  putDirectory,
  putFile,
  putLink,
  remove,
  pathStateAt,
  type Owner,
  type PathState,
} from './path-state.js';
import { normalized, partsOf } from './rooted-path.js';

/** What a path was, as the journal keeps it. */
type PathOriginal =
  | { readonly state: 'absent' }
  | ({ readonly state: 'file'; readonly mode: number; readonly digest: string } & Owner)
  | ({ readonly state: 'symlink'; readonly target: string } & Owner)
  | ({ readonly state: 'directory'; readonly mode: number } & Owner);

const PREFIX = 'path:';
export const pathKey = (path: unknown): string => PREFIX + normalized(path);
const pathOfKey = (key: string): string => key.slice(PREFIX.length);

/**
 * Originals of paths, whatever kind of fragment manages them: File and Directory share this, and may follow one another
 * at a path.
 */
export class PathOriginals {
  constructor(
    private readonly kind: string,
    private readonly surroundings: Surroundings,
  ) {}

  async read(key: string, known: Originals): Promise<Original> {
    const path = pathOfKey(key);
    const { now, content } = await fileAt(this.surroundings.root, path, () => true);
    // A folder that another managed path brought with it goes when the last path in it goes.
    const broughtAlong = new Set(Object.values(known).flatMap(({ made }) => made));
    const made = [
      ...now.above.map(pathKey).filter((above) => broughtAlong.has(above)),
      ...(now.state === 'absent' ? now.missing.map(pathKey) : []),
    ];
    return { kind: this.kind, was: await this.originalOf(now, content), made };
  }

  async restore(key: string, original: Original): Promise<void> {
    const { root, contents } = this.surroundings;
    const path = pathOfKey(key);
    const was = original.was as PathOriginal;
    if ((await this.differs(key, original.was)) !== undefined) {
      if (was.state === 'absent') await remove(root, path);
      if (was.state === 'file') await putFile(root, path, await contents.content(was.digest), was.mode, was);
      if (was.state === 'symlink') await putLink(root, path, was.target, was);
      if (was.state === 'directory') await putDirectory(root, path, was.mode, was);
    }
    // It may be as it was, and still have the temporary file of a killed process next to it.
    if (was.state === 'absent') await remove(root, path);
    else await clearTemporary(root, path);
    for (const made of original.made.toSorted().reverse()) await remove(root, pathOfKey(made));
  }

  async differs(key: string, json: Json): Promise<string | undefined> {
    const was = json as PathOriginal;
    const { root } = this.surroundings;
    const path = pathOfKey(key);
    const { now, content } = await fileAt(root, path, () => was.state === 'file');
    // A directory that others put something into stays: nobody's files are removed with it.
    if (was.state === 'absent' && now.state === 'directory') return undefined;
    if (was.state !== now.state) return `is ${now.state}, but was ${was.state} before Sluice`;
    if (was.state === 'symlink' && now.state === 'symlink')
      return was.target === now.target
        ? undefined
        : `points to ${now.target}, but pointed to ${was.target} before Sluice`;
    if ((was.state === 'file' || was.state === 'directory') && 'mode' in now && was.mode !== now.mode)
      return `mode is ${octal(now.mode)}, but was ${octal(was.mode)} before Sluice`;
    return was.state === 'file' && (content === undefined || sha256(content) !== was.digest)
      ? 'content differs from before Sluice'
      : undefined;
  }

  private async originalOf(now: PathState, content: Buffer | undefined): Promise<PathOriginal> {
    switch (now.state) {
      case 'absent':
        return { state: 'absent' };
      case 'file': {
        const digest = await this.surroundings.contents.keep(content as Buffer);
        return { state: 'file', mode: now.mode, uid: now.uid, gid: now.gid, digest };
      }
      case 'symlink':
        return { state: 'symlink', target: now.target, uid: now.uid, gid: now.gid };
      case 'directory':
        return { state: 'directory', mode: now.mode, uid: now.uid, gid: now.gid };
      case 'other':
        throw new RefusedError('node', 'is neither a file, a directory nor a symbolic link');
    }
  }
}

/**
 * Refuses a path that cannot become what it should be: the wrong thing stands there, or on the way, and it is not
 * Sluice's. What stands on this machine is this machine's fault: on others the same config may do, so it makes
 * nothing known-bad.
 */
export async function checkPath(
  root: string,
  entry: ConfigEntry,
  checked: CheckContext,
  wrong: PathState['state'],
  is: string,
): Promise<void> {
  const path = normalized(entry.spec['path']);
  partsOf(entry.spec['path']);
  for (const other of checked.config.fragments) {
    if (other.kind === 'File' && path.startsWith(`${normalized(other.spec['path'])}/`)) {
      throw new RefusedError('content', `is below a path that is a file: File/${other.name}`);
    }
  }
  const { state } = await pathStateAt(root, path);
  if (state === 'other') throw new RefusedError('node', 'is neither a file, a directory nor a symbolic link');
  if (state === wrong && !checked.taken.has(pathKey(path))) throw new RefusedError('node', is);
}

/** The mode of an entry. Throws Refused when it is none. */
export function modeOf(entry: ConfigEntry, otherwise: number): number {
  const { mode } = entry.spec;
  if (mode === undefined) return otherwise;
  if (typeof mode !== 'string' || !/^[0-7]{3,5}$/.test(mode) || parseInt(mode, 8) > 0o7777)
    throw new RefusedError('content', `mode ${JSON.stringify(mode)} is not octal, such as "0644"`);
  return parseInt(mode, 8);
}
