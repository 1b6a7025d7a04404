import { isLeaseEnd } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

interface PacedChange {
  readonly written: string;
  most: number;
}

/**
 * No more nodes hold forward leases of a change than its `maxUnavailable` allows: a number, or a percentage of the
 * nodes that it affected when its rollout started, rounded down, but at least one.
 */
export function ownPace(): Oracle {
  const paced = new Map<string, PacedChange>();
  /** The change of each lease that is not over. */
  const leases = new Map<string, string>();
  return {
    name: 'own pace',
    onFact(_world, fact) {
      if (fact.type === 'config.accepted' && fact.strategy?.maxUnavailable !== undefined)
        paced.set(fact.change, { written: fact.strategy.maxUnavailable, most: 0 });
      const change = 'change' in fact ? paced.get(fact.change ?? '') : undefined;
      if (fact.type === 'rollout.started' && change !== undefined) {
        const { written } = change;
        const share = Math.floor((Number.parseInt(written, 10) * fact.pending) / 100);
        change.most = written.endsWith('%') ? Math.max(1, share) : Number(written);
      }
      if (isLeaseEnd(fact)) leases.delete(fact.lease);
      if (fact.type !== 'node.lease.granted' || fact.kind !== 'forward' || change === undefined) return;
      leases.set(fact.lease, fact.change);
      const together = [...leases].filter(([, of]) => of === fact.change).map(([lease]) => lease);
      if (together.length > change.most)
        throw new Violation(`${together.join(', ')} of ${fact.change} are open at once, ${change.most} may`);
    },
  };
}
