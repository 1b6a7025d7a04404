import { isLeaseEnd } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

/** I2: a node has at most one lease that is not released. */
export function oneLease(): Oracle {
  const held = new Map<string, string>();
  return {
    name: 'I2 one lease',
    onFact(_world, fact) {
      if (fact.type === 'node.lease.granted') {
        const other = held.get(fact.node);
        if (other !== undefined) throw new Violation(`${fact.node} is granted ${fact.lease} while it holds ${other}`);
        held.set(fact.node, fact.lease);
      } else if (isLeaseEnd(fact)) held.delete(fact.node);
    },
  };
}
