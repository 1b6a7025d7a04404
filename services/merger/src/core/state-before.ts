import { changeSequence, type Fragment, type FragmentRef } from '#libs/contracts';
import { MAX_CHANGE_BYTES, utf8Bytes } from '#libs/manifests';
import { idsOf } from './reach.js';
import { openByAge, touchedIds, type Change, type State } from './state.js';

/** The state before a committed change, as the content of another change; or why it cannot be rolled back. */
export type StateBefore =
  | {
      readonly ok: true;
      /** The source of the change. */
      readonly source: string;
      readonly apply: readonly Fragment[];
      readonly delete: readonly FragmentRef[];
    }
  | { readonly ok: false; readonly code: 'not-found' | 'conflict'; readonly message: string };

/** What a rollback of this change publishes, deletions included. */
export function stateBefore(state: State, name: string): StateBefore {
  const change = state.changes.get(name);
  if (change === undefined)
    return refusal('not-found', `change ${name} not found, or later changes have touched all its fragments: ${APPLY}`);
  if (change.open)
    return refusal('conflict', `${name} has not ended: to end it and roll back its nodes, run sluice abort ${name}`);
  if (change.phase !== 'committed')
    return refusal('conflict', `${name} was ${change.outcome}: it is not committed, so there is nothing to roll back`);
  const ids = touchedIds(change);
  const later = whyTooLate(state, name, ids);
  if (later !== undefined) return refusal('conflict', later);
  const apply: Fragment[] = [];
  const gone: FragmentRef[] = [];
  for (const id of ids) {
    const { fragment, replaced } = state.fragments.get(id) ?? {};
    const deleted = state.goneFragments.get(id);
    // It may have deleted what an earlier change had deleted already.
    const before = deleted?.change === name ? deleted : replaced;
    if (before !== undefined) apply.push(before.fragment);
    else if (fragment !== undefined) gone.push({ kind: fragment.kind, name: fragment.name });
  }
  const bytes = utf8Bytes(JSON.stringify([apply, gone]));
  if (bytes > MAX_CHANGE_BYTES)
    return refusal(
      'conflict',
      `the state before ${name} has ${bytes} bytes; the limit is ${MAX_CHANGE_BYTES}: ${APPLY}`,
    );
  if (apply.length + gone.length === 0)
    return refusal('conflict', `${name} changed nothing: there is nothing to roll back`);
  return { ok: true, source: change.source, apply, delete: gone };
}

/** Why this change cannot be retried because of later ones; undefined if they touched none of its fragments. */
export function whyNoRetry(state: State, name: string, content?: Pick<Change, 'apply' | 'delete'>): string | undefined {
  const touching = content ?? state.changes.get(name);
  return touching && whyTooLate(state, name, touchedIds(touching));
}

/** Names the later changes that touched one of these fragments; undefined if there are none. */
function whyTooLate(state: State, name: string, ids: readonly string[]): string | undefined {
  const later = ids.flatMap((id) => laterChanges(state, id, name).map((other) => `${id} by ${other}`));
  return later.length === 0 ? undefined : `later changes touched the same fragments (${listText(later)}): ${APPLY}`;
}

const APPLY = 'run sluice apply with the manifests that you want';
const MOST_LISTED = 10;

/** Changes that touched a fragment after this one: the last one that is committed, and all that are open. */
function laterChanges(state: State, id: string, name: string): readonly string[] {
  const last = (state.fragments.get(id) ?? state.goneFragments.get(id))?.change;
  const open = openByAge(state).filter((change) => idsOf(change).has(id));
  return [...(last === undefined ? [] : [last]), ...open.map(({ change }) => change)].filter(
    (other) => changeSequence(other) > changeSequence(name),
  );
}

const refusal = (code: 'not-found' | 'conflict', message: string): StateBefore => ({ ok: false, code, message });

const listText = (all: readonly string[]): string =>
  `${all.slice(0, MOST_LISTED).join(', ')}${all.length > MOST_LISTED ? `, and ${all.length - MOST_LISTED} more` : ''}`;
