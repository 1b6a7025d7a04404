import type { Fragment } from '#libs/contracts';
import { DEFAULT_POOL, parsePool, selects, type ParsedPool as PoolPolicy } from '#libs/manifests';

export { DEFAULT_POOL, type PoolPolicy };

/** How many of `members` nodes may be unavailable at once: the count, or `max(1, floor(percent of members))`. */
export function budgetOf(policy: Pick<PoolPolicy, 'maxUnavailable'>, members: number): number {
  const max = policy.maxUnavailable;
  return max.kind === 'count' ? max.n : Math.max(1, Math.floor((max.p * members) / 100));
}

/** The pools that select these labels, by name. */
export const poolsSelecting = (
  pools: Iterable<PoolPolicy>,
  labels: Readonly<Record<string, string>>,
): readonly string[] =>
  [...pools]
    .filter((pool) => selects(pool.selector, labels))
    .map((pool) => pool.name)
    .sort();

/** Which of several pools a node belongs to: the one with the smallest budget, then the first by name. */
export function choosePool(names: readonly string[], budget: (pool: string) => number): string {
  return [...names].sort((a, b) => budget(a) - budget(b) || (a < b ? -1 : 1))[0] ?? DEFAULT_POOL.name;
}

/** The pool policies among fragments, by name. */
export function poolPolicies(fragments: Iterable<Fragment>): ReadonlyMap<string, PoolPolicy> {
  return new Map(
    [...fragments]
      .filter((fragment) => fragment.kind === 'Pool')
      .map((fragment) => [fragment.name, parsePool(fragment)]),
  );
}
