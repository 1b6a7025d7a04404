import type { PoolPolicy } from '#libs/budget';
import { canonicalJson } from '#libs/rendering';

/** How a pool has its nodes drained, as one text: the same for the same, whoever wrote it down. */
export const drainTerms = ({ drainMs, drain }: Pick<PoolPolicy, 'drainMs' | 'drain'>): string =>
  canonicalJson({ drainMs, drain });

/** The same of pools by name, each worked out when it is first asked for; undefined for one that nobody has written. */
export function termsOf(pools: { get(name: string): PoolPolicy | undefined }): (pool: string) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (name) => {
    if (!known.has(name)) {
      const pool = pools.get(name);
      known.set(name, pool === undefined ? undefined : drainTerms(pool));
    }
    return known.get(name);
  };
}
