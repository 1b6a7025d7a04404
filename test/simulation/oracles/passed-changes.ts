import { byAge, fragmentId, type Fragment, type FragmentRef } from '#libs/contracts';

/** The fragments of a change. */
export interface Touching {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
}

export const idsOf = (content: Touching): readonly string[] => [...content.apply, ...content.delete].map(fragmentId);

/**
 * Call this after a change was committed. What it has touched, older changes that are not committed leave as it is:
 * they waited for something that did not exist, and it has passed them.
 */
export function leaveTo<T extends Touching>(published: Map<string, T>, newer: string): void {
  const content = published.get(newer);
  const ids = new Set(content === undefined ? [] : idsOf(content));
  const isKept = (ref: FragmentRef): boolean => !ids.has(fragmentId(ref));
  for (const [change, older] of published)
    if (byAge(change, newer) < 0)
      published.set(change, { ...older, apply: older.apply.filter(isKept), delete: older.delete.filter(isKept) });
}
