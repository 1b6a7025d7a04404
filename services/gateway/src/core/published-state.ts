import type { Fragment } from '#libs/contracts';
import { leavesEveryNode } from '#libs/manifests';
import { ABSENT, weightOf, type Change } from './changes.js';
import type { Resource } from './resource.js';
import type { State } from './state.js';

/**
 * The state of an object, from what was published and its results. Nothing else decides, so a restart loses nothing.
 */
export type PublishedState =
  /** The content of these changes must be read first. */
  | { readonly state: 'unread'; readonly changes: readonly string[] }
  /** It cannot be published at all. */
  | { readonly state: 'malformed' }
  /** An open or committed change has the same content as the object. */
  | { readonly state: 'carried'; readonly change: Change }
  /** The newest change with that content was refused or rolled back, or `change` is a rollback of it. */
  | { readonly state: 'failed'; readonly change: Change }
  /** No change has that content yet, so the object must be published. `after` is the newest change about it. */
  | { readonly state: 'differs'; readonly after: string }
  /** It must be deleted, and exists on no node. */
  | { readonly state: 'nothing' };

/** The desired content of the object: its digest, or that it must not exist. */
export const desiredOf = ({ deleting, hash }: Resource): string => (deleting ? ABSENT : hash);

export function publishedStateOf({ index }: State, resource: Resource): PublishedState {
  if (!resource.deleting && resource.problems.length > 0) return { state: 'malformed' };
  const desired = desiredOf(resource);
  const changes = index.touchingOf(resource.id);
  const unread = changes
    .flatMap(({ change, rollbackOf }) => [change, ...(rollbackOf === undefined ? [] : [rollbackOf])])
    .filter((change) => index.contentOf(change, resource.id) === undefined);
  if (unread.length > 0) return { state: 'unread', changes: unread };
  // Without this, each rollback of an object would be overwritten at once. What it rolled back may be trimmed.
  const isRolledBackBy = ({ rollbackOf }: Change): boolean =>
    rollbackOf !== undefined &&
    !resource.deleting &&
    (index.contentsOf(rollbackOf)?.get(resource.id) ?? desired) === desired;
  let failed: Change | undefined;
  for (const change of changes) {
    const content = index.contentOf(change.change, resource.id);
    const weight = weightOf(change);
    if (weight === 'moot') continue;
    if (weight === 'failed') failed ??= content === desired ? change : undefined;
    else if (content === desired) return { state: 'carried', change };
    else if (failed === undefined && isRolledBackBy(change)) return { state: 'failed', change };
    else
      return failed === undefined
        ? { state: 'differs', after: changes[0]?.change ?? '' }
        : { state: 'failed', change: failed };
  }
  if (resource.deleting) return { state: 'nothing' };
  return failed === undefined
    ? { state: 'differs', after: changes[0]?.change ?? '' }
    : { state: 'failed', change: failed };
}

/**
 * When to retry what failed, monotonic; Infinity for never. Each retry is a new change, so each of these reasons
 * applies once.
 */
export function triedAgainAtMs(state: State, resource: Resource, failed: Change): number {
  if (resource.retry === failed.change || mayGoOn(resource, failed)) return 0;
  if (weightOf(failed) !== 'failed') return Infinity; // a rollback
  if (resource.deleting) {
    if (state.clearedAt > failed.ledger) return 0;
    // A refused change touched no node. A change that was rolled back did, and is not repeated for unrelated reasons.
    if (failed.phase === 'rejected' && state.index.committedAt > failed.ledger) return 0;
  }
  if (hasAnotherCulprit(state, resource, failed)) return 0;
  const againMs = againAfterMs(state, resource, failed);
  if (againMs === undefined) return Infinity;
  return (
    state.index.endedMs(failed.change) + (state.leftNodes.has(culpritOf(state, failed)) ? againMs / SOONER : againMs)
  );
}

/**
 * How long after its end something is retried whose cause may be gone without any event: what exceeded the quota of the
 * day, and a deletion that was rolled back, because nobody can edit an object that is being deleted. Undefined for what
 * waits for a person, for example after an abort.
 */
export function againAfterMs({ index }: State, resource: Resource, failed: Change): number | undefined {
  const isOverQuota = failed.phase === 'rejected' && failed.reasons.some(({ code }) => code === 'over-quota');
  const isRolledBack = resource.deleting && failed.phase === 'ended' && failed.outcome === 'reverted';
  if (!isOverQuota && !isRolledBack) return undefined;
  let tries = 0;
  for (const change of index.touchingOf(resource.id)) {
    const weight = weightOf(change);
    if (weight === 'moot') continue;
    if (weight !== 'failed' || index.contentOf(change.change, resource.id) !== desiredOf(resource)) break;
    tries += 1;
  }
  const longestMs = isOverQuota ? LONGEST_QUOTA_MS : LONGEST_AGAIN_MS;
  return Math.min(longestMs, FIRST_AGAIN_MS * 2 ** Math.min(tries - 1, 16));
}

const [FIRST_AGAIN_MS, LONGEST_AGAIN_MS] = [10 * 60_000, 6 * 3_600_000];
/** A refused change costs little, and the quota is free again at midnight. */
const LONGEST_QUOTA_MS = 3_600_000;
/** The node that caused the failure has left. There is still a pause, so that no retry can loop. */
const SOONER = 10;

/** The node that caused the rollback: the reason of the change starts with its name. */
const culpritOf = ({ rollouts }: State, { change, reason }: Change): string =>
  (reason || (rollouts.get(change)?.reason ?? '')).split(' ', 1)[0] as string;

/**
 * A change is rejected if one of its fragments belongs to another source. That one continues when it may be taken
 * over, and the others continue without it.
 */
function mayGoOn({ id, takeOver }: Resource, { reasons }: Change): boolean {
  const foreign = reasons.filter(({ code }) => code === 'owned-by');
  if (foreign.some(({ fragment }) => fragment === id)) return takeOver === true;
  return foreign.length > 0 && foreign.length === reasons.length;
}

/**
 * What was refused together is tried again once any of it was changed or taken away: that one may have been to blame.
 */
function hasAnotherCulprit({ index, resources, listedKinds }: State, { id }: Resource, failed: Change): boolean {
  for (const [other, published] of index.contentsOf(failed.change) ?? []) {
    if (other === id || !listedKinds.has(other.split('/')[0] as string)) continue;
    const resource = resources.get(other);
    if ((resource === undefined ? ABSENT : desiredOf(resource)) !== published) return true;
  }
  return false;
}

/**
 * Whether nothing keeps the object of a deletion that is committed: with `deletion: everyNode`, the nodes that still
 * have it do. Before the view of the fragment says that it is deleted, nobody knows which nodes these are.
 */
export function isOffAllNodes({ reached }: State, { id, kind, spec }: Resource): boolean {
  const found = reached.get(id);
  const isAwaited = leavesEveryNode({ kind, spec: spec as Fragment['spec'] });
  return found === undefined || !isAwaited || (found.gone && !found.removing);
}
