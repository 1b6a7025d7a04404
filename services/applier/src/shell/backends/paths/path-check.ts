import { RefusedError, type CheckContext, type Surroundings } from '../../ports.js';
import {
  attributesDiffer,
  fileAt,
  octal,
  pathStateAt,
  severalNames,
  type AskedAttributes,
  type PathRead,
} from './path-state.js';
import { normalized, partsOf } from './rooted-path.js';

/** A path that an entry will make so. */
export interface CheckedPath {
  /** The entry, as `Kind/name`. */
  readonly id: string;
  readonly path: string;
  /** What must not stand there, unless Sluice put it there. */
  readonly wrong: 'directory' | 'file';
  readonly asked: AskedAttributes;
  /** Of a file. */
  readonly content?: Buffer;
  /** A link at the path itself is followed. */
  readonly follow?: boolean;
}

/**
 * Refuses a path that cannot become what it should be, or that could not be restored: nothing has been changed yet. It
 * depends on this machine alone, so other nodes may have the config.
 */
export async function checkPath(surroundings: Surroundings, target: CheckedPath, checked: CheckContext): Promise<void> {
  const { root, aliases } = surroundings;
  const { wrong, follow = false } = target;
  const path = normalized(target.path);
  partsOf(target.path);
  for (const other of checked.config.fragments) {
    const isLeaf = other.kind === 'File' || other.kind === 'Link';
    if (isLeaf && path.startsWith(`${normalized(other.spec['path'])}/`)) {
      const what = other.kind.toLowerCase();
      throw new RefusedError('content', `is below a path that is a ${what}: ${other.kind}/${other.name}`);
    }
  }
  const read = await fileAt(root, path, { follow, wants: ({ size }) => size === target.content?.length });
  const { state } = read.now;
  if (state === 'other') throw inTheWay(`${path} is neither a file, a directory nor a symbolic link`);
  if (state === wrong && !checked.taken.has(aliases.key(path))) throw inTheWay(`${path} is a ${wrong}`);
  if (state === 'symlink' && target.content !== undefined && (await leadsToDirectory(root, path)))
    throw inTheWay(`${path} is a symbolic link to a directory`);
  assertOnlyOne(target, path, read, checked);
  assertNotState(surroundings, path, read);
  assertEnterable(target, read);
  const { mode } = target.asked;
  if (mode !== undefined && isPrivileged(mode)) assertAllowed(surroundings, `mode ${octal(mode)}`);
  if (changes(target, read)) await assertRestorable(surroundings, target, read);
}

const leadsToDirectory = async (root: string, path: string): Promise<boolean> =>
  // A link that must not be followed is replaced.
  (await pathStateAt(root, path, true).catch(() => undefined))?.state === 'directory';

/** What a review could not know: links on this node let two paths lead to one place. */
function assertOnlyOne({ id }: CheckedPath, path: string, { place }: PathRead, { places }: CheckContext): void {
  const other = places.get(place);
  if (other !== undefined && other.path !== path)
    throw inTheWay(`${path} leads to the same place as ${other.path} of ${other.id} on this node`);
  places.set(place, { id, path });
}

function assertNotState({ stateFolder }: Surroundings, path: string, { real, parent }: PathRead): void {
  const { identity, path: folder } = stateFolder;
  const isInside = folder !== undefined && (real === folder || real.startsWith(`${folder}/`));
  if (isInside || parent?.identity === identity)
    throw inTheWay(`${path} is in the state folder of the applier, which no fragment may change`);
}

/** In a user's folder they could put any directory there: one of somebody else's must not change. */
function assertEnterable({ follow = false, asked, path }: CheckedPath, { now, parent }: PathRead): void {
  if (!follow || parent === undefined || parent.uid === 0) return;
  const uids = [asked.uid, now.state === 'directory' ? now.uid : undefined];
  const other = uids.find((uid) => uid !== undefined && uid !== parent.uid);
  if (other !== undefined)
    throw inTheWay(
      `${path} cannot belong to user ${other}: the folder around it belongs to user ${parent.uid}, who could replace it`,
    );
}

function changes({ asked, content }: CheckedPath, { now, content: found }: PathRead): boolean {
  if (now.state !== 'file' && now.state !== 'directory') return false;
  if (now.state === 'file' && (found === undefined || content?.equals(found) !== true)) return true;
  return attributesDiffer(now, asked) !== undefined;
}

/** Without these, a rollback could not bring back what is there. */
async function assertRestorable(surroundings: Surroundings, target: CheckedPath, { now }: PathRead): Promise<void> {
  const { path, asked, follow = false } = target;
  if (now.state === 'file' && now.links > 1 && asked.breaksLinks !== true) throw severalNames(path, now.links);
  if ('mode' in now && isPrivileged(now.mode)) assertAllowed(surroundings, `${path} with mode ${octal(now.mode)}`);
  const { extra } = await fileAt(surroundings.root, path, { full: true, follow });
  if (extra?.xattrs?.[CAPABILITIES] !== undefined)
    assertAllowed(surroundings, `${path}, which gives capabilities to who runs it,`);
}

const PRIVILEGED = 0o6000;
const CAPABILITIES = 'security.capability';
const isPrivileged = (mode: number): boolean => (mode & PRIVILEGED) !== 0;

function assertAllowed({ allowSetuid }: Surroundings, what: string): void {
  if (!allowSetuid)
    throw inTheWay(
      `${what} needs the setting --allow-setuid of this node: setuid, setgid and file capabilities let others act as the owner`,
    );
}

const inTheWay = (message: string): RefusedError => new RefusedError('node', message);
