import { ABSENT, weightOf, type Change } from './changes.js';
import type { Resource } from './resource.js';
import type { State } from './state.js';

/** Where an object stands, by what was published and what became of it. Nothing else decides, so a restart forgets nothing. */
export type Stand =
  /** What these changes say has to be read first. */
  | { readonly is: 'unread'; readonly changes: readonly string[] }
  /** It cannot be published at all. */
  | { readonly is: 'malformed' }
  /** A change on its way, or committed, says what the object says. */
  | { readonly is: 'carried'; readonly change: Change }
  /** The newest change that said so was refused or went back. */
  | { readonly is: 'failed'; readonly change: Change }
  /** Nothing says so yet: the object is to be published. `after` is the newest change about it. */
  | { readonly is: 'differs'; readonly after: string }
  /** It shall go, and is nowhere. */
  | { readonly is: 'nothing' };

/** What the object wants: its digest, or that it shall not be. */
export const wantedOf = ({ deleting, hash }: Resource): string => (deleting ? ABSENT : hash);

export function standOf({ index }: State, resource: Resource): Stand {
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
    else return failed === undefined ? { is: 'differs', after: changes[0]?.change ?? '' } : { is: 'failed', change: failed };
  }
  if (resource.deleting) return { is: 'nothing' };
  return failed === undefined ? { is: 'differs', after: changes[0]?.change ?? '' } : { is: 'failed', change: failed };
}

/** Whether what failed is to be tried again. Each new try is a new change, so that none of these holds twice. */
export function isTriedAgain(state: State, resource: Resource, failed: Change): boolean {
  if (resource.retry === failed.change) return true;
  if (resource.deleting) {
    if (state.forgivenAt > failed.ledger) return true;
    // What was refused touched no node; what went back did, and is not repeated for any odd reason.
    if (failed.phase === 'rejected' && state.index.committedAt > failed.ledger) return true;
  }
  return hasAnotherCulprit(state, resource, failed);
}

/** What was refused together is tried again once any of it was changed or taken away: that one may have been to blame. */
function hasAnotherCulprit({ index, resources, listed }: State, { id }: Resource, failed: Change): boolean {
  for (const [other, said] of index.contentsOf(failed.change) ?? []) {
    if (other === id || !listed.has(other.split('/')[0] as string)) continue;
    const found = resources.get(other);
    if ((found === undefined ? ABSENT : wantedOf(found)) !== said) return true;
  }
  return false;
}
