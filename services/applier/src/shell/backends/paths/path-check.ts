import type { Content } from '../../content.js';
import { RefusedError, type CheckContext, type ManagedPlace, type Surroundings } from '../../ports.js';
import { assertKindStays } from './kind-change.js';
import { severalNames } from './path-changes.js';
import { attributesDiffer, comparing, octal } from './path-differences.js';
import {
  assertEmpty,
  assertReplaceable,
  fileAt,
  isMountPoint,
  mounted,
  pathStateAt,
  type DesiredAttributes,
  type PathRead,
} from './path-state.js';
import { normalized, partsOf } from './rooted-path.js';

/** A path with what an entry will create there. */
export interface CheckedPath {
  /** The entry, as `Kind/name`. */
  readonly id: string;
  readonly path: string;
  /** What must not exist there, unless Sluice created it. */
  readonly wrong: 'directory' | 'file';
  readonly desired: DesiredAttributes;
  /** Only for files. */
  readonly content?: Content;
  /** Whether a link at the path itself is followed. */
  readonly follow?: boolean;
}

/**
 * Refuses a path at which the entry cannot be created, or that could not be restored. Nothing has been changed yet. The
 * result depends only on this machine, so other nodes may accept the config.
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
  assertKindStays(target.id.slice(0, target.id.indexOf('/')), path, aliases, checked.from);
  const looked = target.content === undefined ? {} : comparing(target.content);
  const read = await fileAt<boolean>(root, path, { follow, ...looked });
  const { state } = read.now;
  if (state === 'other') throw inTheWay(`${path} is neither a file, a directory nor a symbolic link`);
  if (state === wrong && !checked.taken.has(aliases.key(path))) throw inTheWay(`${path} is a ${wrong}`);
  if (state === 'directory' && wrong === state) await assertEmpty(root, path);
  if (state === 'symlink' && target.content !== undefined && (await leadsToDirectory(root, path)))
    throw inTheWay(`${path} is a symbolic link to a directory`);
  assertOnlyOne(target, path, read, checked);
  assertNotState(surroundings, path, read);
  assertEnterable(target, read);
  const { mode } = target.desired;
  if (mode !== undefined && isPrivileged(mode)) assertAllowed(surroundings, `mode ${octal(mode)}`);
  if (changes(target, read)) await assertRestorable(surroundings, target, read);
  if (isOther(target, read) || changes(target, read)) await assertReplaceable(root, path, follow);
  if (isReplaced(target, read) && (await isMountPoint(root, path, follow))) throw mounted(path, NOT_REPLACED);
}

/** A path, and whether the file there already has the content. */
type PathReading = PathRead<boolean>;

const leadsToDirectory = async (root: string, path: string): Promise<boolean> =>
  // A link that must not be followed is replaced.
  (await pathStateAt(root, path, true).catch(() => undefined))?.state === 'directory';

/** Not visible to a review: because of links on this node, two paths lead to one place. */
function assertOnlyOne({ id }: CheckedPath, path: string, read: PathReading, { places }: CheckContext): void {
  const { place, link } = read;
  const other = places.get(place);
  if (other !== undefined && other.path !== path) throw inTheWay(sharedText(path, link, other));
  places.set(place, { id, path, link });
}

/** Says that two paths lead to one place, and why. */
export function sharedText(
  path: string,
  link: string | undefined,
  other: Omit<ManagedPlace, 'id'> & { readonly id?: string },
): string {
  const through = link ?? other.link;
  const because = through === undefined ? ' on this node' : `, because ${through} is a link`;
  return `${path} leads to the same place as ${other.path}${other.id === undefined ? '' : ` of ${other.id}`}${because}`;
}

function assertNotState({ stateFolder }: Surroundings, path: string, { now, within, place }: PathReading): void {
  const folders = now.state === 'directory' ? [...within, now.identity] : within;
  if (folders.some((folder) => stateFolder.folders.has(folder)))
    throw inTheWay(`${path} is in the state folder of the applier, which no fragment may change`);
  if (stateFolder.links.has(place))
    throw inTheWay(`${path} is a link that leads to the state folder of the applier, which no fragment may change`);
}

/** In a folder of a user, that user could put any directory there. A directory of somebody else must not change. */
function assertEnterable({ follow = false, desired, path }: CheckedPath, { now, parent }: PathReading): void {
  if (!follow || parent === undefined || parent.uid === 0) return;
  const uids = [desired.uid, now.state === 'directory' ? now.uid : undefined];
  const other = uids.find((uid) => uid !== undefined && uid !== parent.uid);
  if (other !== undefined)
    throw inTheWay(
      `${path} cannot belong to user ${other}: the folder around it belongs to user ${parent.uid}, who could replace it`,
    );
}

function changes({ desired }: CheckedPath, { now, content: isSame }: PathReading): boolean {
  if (now.state !== 'file' && now.state !== 'directory') return false;
  if (now.state === 'file' && isSame !== true) return true;
  return attributesDiffer(now, desired) !== undefined;
}

/** Whether something of another kind, or nothing, is where the path leads. */
const isOther = ({ wrong, content }: CheckedPath, { now }: PathReading): boolean => {
  if (wrong === 'file') return now.state !== 'directory';
  return now.state !== (content === undefined ? 'symlink' : 'file');
};

const NOT_REPLACED =
  'it cannot be replaced: unmount it first, or manage the file that is mounted there by its own path';

/** Whether something else will be put where the path leads. A directory keeps its place. */
const isReplaced = (target: CheckedPath, read: PathReading): boolean =>
  read.now.state === 'file' ? changes(target, read) : read.now.state === 'directory' && target.wrong === 'directory';

/** Without these, a rollback could not restore what exists now. */
async function assertRestorable(surroundings: Surroundings, target: CheckedPath, { now }: PathReading): Promise<void> {
  const { path, desired, follow = false } = target;
  if (now.state === 'file' && now.links > 1 && desired.breaksLinks !== true)
    throw severalNames(path, now.links, target.content !== undefined);
  if ('mode' in now && isPrivileged(now.mode)) assertAllowed(surroundings, `${path} has mode ${octal(now.mode)}, and`);
  const { extra } = await fileAt(surroundings.root, path, { full: true, follow });
  if (extra?.xattrs?.[CAPABILITIES] !== undefined) assertAllowed(surroundings, `${path} has file capabilities, and`);
}

const PRIVILEGED = 0o6000;
const CAPABILITIES = 'security.capability';
const isPrivileged = (mode: number): boolean => (mode & PRIVILEGED) !== 0;

function assertAllowed({ allowSetuid }: Surroundings, what: string): void {
  if (!allowSetuid)
    throw inTheWay(
      `${what} needs --allow-setuid on this node: setuid, setgid and file capabilities let others act as the owner`,
    );
}

const inTheWay = (message: string): RefusedError => new RefusedError('node', message);
