import { fragmentId, type Fragment, type FragmentRef } from '#libs/contracts';
import { isPolicyKind } from '#libs/manifests';

/** The policy fragments in a change. */
export interface CarriedPolicies {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
}

/** The policy part of a change. */
export const carriedPolicies = (change: {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
}): CarriedPolicies => ({
  apply: change.apply.filter(({ kind }) => isPolicyKind(kind)),
  delete: change.delete.filter(({ kind }) => isPolicyKind(kind)),
});

/**
 * The policies of a kind that apply to the leases of a change: the committed ones, overridden by those in the change.
 * By name.
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
