import { fragmentId, type Fragment } from '#libs/contracts';
import type { Change, State } from './state.js';

type Content = Pick<Change, 'apply' | 'delete'>;

/** The committed fragments after the changes are applied to them, one after another. */
export function fragmentsWith(state: State, ...changes: readonly Content[]): readonly Fragment[] {
  const all = new Map(committedFragments(state).map((fragment) => [fragmentId(fragment), fragment]));
  for (const change of changes) {
    for (const ref of change.delete) all.delete(fragmentId(ref));
    for (const fragment of change.apply) all.set(fragmentId(fragment), fragment);
  }
  return [...all.values()];
}

/** All committed fragments, sorted by id. */
export const committedFragments = (state: State): readonly Fragment[] =>
  [...state.fragmentIds].flatMap((id) => state.fragments.get(id)?.fragment ?? []);
