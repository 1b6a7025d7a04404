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
type PathOriginal = { readonly state: 'absent' } | PresentOriginal;
type PresentOriginal = Owner &
  Home &
  (
    | { readonly state: 'file'; readonly mode: number; readonly digest: string }
    | { readonly state: 'symlink'; readonly target: string }
    | { readonly state: 'directory'; readonly mode: number }
  );

/** The folder that it was saved from, as `device:inode`, which says something only in that boot. */
interface Home {
  readonly folder: string;
  readonly bootId: string;
}

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
    const { now, content, folder = '' } = await fileAt(this.surroundings.root, path, () => true);
    // A folder that another managed path brought with it goes when the last path in it goes.
    const broughtAlong = new Set(Object.values(known).flatMap(({ made }) => made));
    const made = [
      ...now.above.map(pathKey).filter((above) => broughtAlong.has(above)),
      ...(now.state === 'absent' ? now.missing.map(pathKey) : []),
    ];
    return { kind: this.kind, was: (await this.originalOf(now, content, folder)) as unknown as Json, made };
  }

  async restore(key: string, original: Original): Promise<void> {
    const { root } = this.surroundings;
    const path = pathOfKey(key);
    const was = original.was as unknown as PathOriginal;
    if ((await this.differs(key, original.was)) !== undefined) await this.put(path, was);
    // It may be as it was, and still have the temporary file of a killed process next to it.
    if (was.state === 'absent') await remove(root, path);
    else await clearTemporary(root, path);
    for (const made of original.made.toSorted().reverse()) await remove(root, pathOfKey(made));
  }

  async differs(key: string, json: Json): Promise<string | undefined> {
    const was = json as unknown as PathOriginal;
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

  private async put(path: string, was: PathOriginal): Promise<void> {
    const { root, contents, bootId } = this.surroundings;
    if (was.state === 'absent') return remove(root, path);
    const options = { owner: was, folder: was.bootId === bootId ? was.folder : undefined };
    if (was.state === 'file') await putFile(root, path, await contents.content(was.digest), was.mode, options);
    if (was.state === 'symlink') await putLink(root, path, was.target, options);
    if (was.state === 'directory') await putDirectory(root, path, was.mode, options);
  }

  private async originalOf(now: PathState, content: Buffer | undefined, folder: string): Promise<PathOriginal> {
    if (now.state === 'absent') return { state: 'absent' };
    if (now.state === 'other') throw new RefusedError('node', 'is neither a file, a directory nor a symbolic link');
    const { uid, gid } = now;
    const kept = { uid, gid, folder, bootId: this.surroundings.bootId };
    switch (now.state) {
      case 'file':
        return {
          ...kept,
          state: 'file',
          mode: now.mode,
          digest: await this.surroundings.contents.keep(content as Buffer),
        };
      case 'symlink':
        return { ...kept, state: 'symlink', target: now.target };
      case 'directory':
        return { ...kept, state: 'directory', mode: now.mode };
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
    const isLeaf = other.kind === 'File' || other.kind === 'Link';
    if (isLeaf && path.startsWith(`${normalized(other.spec['path'])}/`)) {
      const what = other.kind.toLowerCase();
      throw new RefusedError('content', `is below a path that is a ${what}: ${other.kind}/${other.name}`);
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
