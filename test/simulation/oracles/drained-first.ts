import { Violation, type Oracle } from '../world.js';

/** I5, as far as it can be without Kubernetes: nothing is written under a lease with a drain unless the other tool holds its cordon. */
export function drainedFirst(): Oracle {
  const drains = new Set<string>();
  const over = new Set<string>();
  return {
    name: 'I5 drained first',
    onFact(_world, fact) {
      if (fact.type === 'node.lease.granted' && fact.phase === 'draining') drains.add(fact.lease);
      if (fact.type === 'node.lease.settled' && fact.because !== 'applied') over.add(fact.lease);
    },
    onWrite(world, node) {
      const lease = node.journal.work?.lease ?? '';
      if (!drains.has(lease) || over.has(lease) || node.revived === lease || world.outside.cordoned.get(node.name) === lease) return;
      throw new Violation(`${node.name} writes under ${lease}, and is not drained for it`);
    },
  };
}
