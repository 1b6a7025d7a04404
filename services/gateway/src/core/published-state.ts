import { ABSENT, weightOf, type Change } from './changes.js';
import type { Resource } from './resource.js';
import type { State } from './state.js';

/**
 * Where an object stands, by what was published and what became of it. Nothing else decides, so a restart forgets
 * nothing.
 */
export type PublishedState =
  /** What these changes say has to be read first. */
  | { readonly is: 'unread'; readonly changes: readonly string[] }
  /** It cannot be published at all. */
  | { readonly is: 'malformed' }
  /** A change on its way, or committed, says what the object says. */
  | { readonly is: 'carried'; readonly change: Change }
  /** The newest change that said so was refused or rolled back. */
  | { readonly is: 'failed'; readonly change: Change }
  /** Nothing says so yet: the object is to be published. `after` is the newest change about it. */
  | { readonly is: 'differs'; readonly after: string }
  /** It is to be deleted, and exists nowhere. */
  | { readonly is: 'nothing' };

/** What the object wants: its digest, or that it must not exist. */
export const wantedOf = ({ deleting, hash }: Resource): string => (deleting ? ABSENT : hash);

export function publishedStateOf({ index }: State, resource: Resource): PublishedState {
  if (!resource.deleting && resource.problems.length > 0) return { is: 'malformed' };
  const wanted = wantedOf(resource);
  const changes = index.touchingOf(resource.id);
  const unread = changes.filter(({ change }) => index.contentsOf(change) === undefined).map(({ change }) => change);
  if (unread.length > 0) return { is: 'unread', changes: unread };
  let failed: Change | undefined;
  for (const change of changes) {
    const says = index.contentsOf(change.change)?.get(resource.id) ?? ABSENT;
    const weight = weightOf(change);
    if (weight === 'moot') continue;
    if (weight === 'failed') failed ??= says === wanted ? change : undefined;
    else if (says === wanted) return { is: 'carried', change };
    else
      return failed === undefined
        ? { is: 'differs', after: changes[0]?.change ?? '' }
        : { is: 'failed', change: failed };
  }
  if (resource.deleting) return { is: 'nothing' };
  return failed === undefined ? { is: 'differs', after: changes[0]?.change ?? '' } : { is: 'failed', change: failed };
}

/**
 * From when on what failed is to be tried again, monotonic; Infinity for never. Each new try is a new change, so that
 * none of these holds twice.
 */
export function triedAgainAtMs(state: State, resource: Resource, failed: Change): number {
  if (resource.retry === failed.change) return 0;
  if (resource.deleting) {
    if (state.clearedAt > failed.ledger) return 0;
    // What was refused touched no node; what was rolled back did, and is not repeated for any odd reason.
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
 * How long after its end a deletion that was rolled back is tried again by itself: what kept it may be gone without
 * anybody hearing of it, and nobody can edit an object that is on its way out. Undefined for what waits for a person,
 * as what a person aborted does.
 */
export function againAfterMs(
  { index }: State,
  { id, deleting }: Resource,
  { phase, outcome }: Change,
): number | undefined {
  if (!deleting || phase !== 'ended' || outcome !== 'reverted') return undefined;
  let tries = 0;
  for (const change of index.touchingOf(id)) {
    const weight = weightOf(change);
    if (weight === 'moot') continue;
    if (weight !== 'failed' || index.contentsOf(change.change)?.get(id) !== ABSENT) break;
    tries += 1;
  }
  return Math.min(LONGEST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** Math.min(tries - 1, 16));
}

const [FIRST_AGAIN_MS, LONGEST_AGAIN_MS] = [10 * 60_000, 6 * 3_600_000];
/**
 * Where the node that was to blame has left. A distance there is even then: nothing that is tried again ever comes to
 * be a loop.
 */
const SOONER = 10;

/** The node that turned the rollout round: its reason begins with it. */
const culpritOf = ({ rollouts }: State, { change, reason }: Change): string =>
  (reason || (rollouts.get(change)?.reason ?? '')).split(' ', 1)[0] as string;

/**
 * What was refused together is tried again once any of it was changed or taken away: that one may have been to blame.
 */
function hasAnotherCulprit({ index, resources, listed }: State, { id }: Resource, failed: Change): boolean {
  for (const [other, said] of index.contentsOf(failed.change) ?? []) {
    if (other === id || !listed.has(other.split('/')[0] as string)) continue;
    const found = resources.get(other);
    if ((found === undefined ? ABSENT : wantedOf(found)) !== said) return true;
  }
  return false;
}
