import { fragmentId, type Fragment, type FragmentRef } from '#libs/contracts';
import { isPolicyKind } from '#libs/manifests';

/** The policy fragments that a change carries. */
export interface CarriedPolicies {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
}

/** What of a change is policy. */
export const carriedPolicies = (change: {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
}): CarriedPolicies => ({
  apply: change.apply.filter(({ kind }) => isPolicyKind(kind)),
  delete: change.delete.filter(({ kind }) => isPolicyKind(kind)),
});

/**
 * The committed policies of a kind, with those that a change carries in their place: what holds for its own leases. By
 * name.
 */
export function policiesOf(
  kind: string,
  committed: Iterable<Fragment>,
  carried: CarriedPolicies = { apply: [], delete: [] },
): readonly Fragment[] {
  const all = new Map([...committed].map((fragment) => [fragmentId(fragment), fragment]));
  for (const ref of carried.delete) all.delete(fragmentId(ref));
  for (const fragment of carried.apply) all.set(fragmentId(fragment), fragment);
  return [...all.values()].filter((fragment) => fragment.kind === kind).sort((a, b) => (a.name < b.name ? -1 : 1));
}
