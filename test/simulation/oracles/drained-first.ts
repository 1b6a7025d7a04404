import type { SimNode } from '../sim-node.js';
import { Violation, type Oracle, type World } from '../world.js';

/**
 * I5: under a lease with a drain nothing is written and nothing restarted unless the drain came to its end, and whoever drains still holds the
 * node: the other tool its cordon, or the Node bears the lease's mark. A Node that is gone, or was made again since, bears none.
 */
export function drainedFirst(): Oracle {
  const drains = new Set<string>();
  const drained = new Map<string, string | undefined>();
  const over = new Set<string>();
  const check = (world: World, node: SimNode): void => {
    const lease = node.journal.work?.lease ?? '';
    if (!drains.has(lease) || over.has(lease) || node.revived === lease) return;
    if (drained.has(lease) && isHeld(world, node.name, lease, drained.get(lease))) return;
    throw new Violation(`${node.name} works under ${lease}, and is not drained for it`);
  };
  return {
    name: 'I5 drained first',
    onFact(world, fact) {
      if (fact.type === 'node.drained') drained.set(fact.lease, world.cluster?.nodes.get(fact.node)?.uid);
      if (fact.type === 'node.lease.granted' && fact.phase === 'draining') drains.add(fact.lease);
      if (fact.type === 'node.lease.settled' && fact.because !== 'applied') over.add(fact.lease);
    },
    onWrite: check,
    onAct: check,
  };
}

function isHeld({ cluster, outside }: World, node: string, lease: string, uid: string | undefined): boolean {
  if (cluster === undefined) return outside.cordoned.get(node) === lease;
  const there = cluster.nodes.get(node);
  return there === undefined || there.uid !== uid || cluster.heldFor(node) === lease;
}
