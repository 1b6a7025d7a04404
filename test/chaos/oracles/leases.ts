import { isLeaseEnd } from '#libs/contracts';
import type { Oracle } from './oracle.js';

/** I2 and I3: a node has at most one lease, and no forward lease leads to a known-bad config. */
export const leases: Oracle = {
  name: 'I2 I3 leases',
  judge({ facts }) {
    const held = new Map<string, string>();
    const bad = new Set<string>();
    const wrong: string[] = [];
    for (const fact of facts) {
      if (fact.type === 'config.judged' && fact.knownBad) for (const key of [fact.hash, fact.recipe]) bad.add(key);
      else if (fact.type === 'config.cleared') for (const key of [fact.hash, fact.recipe]) bad.delete(key);
      else if (isLeaseEnd(fact)) held.delete(fact.node);
      else if (fact.type === 'node.lease.granted') {
        const other = held.get(fact.node);
        if (other !== undefined) wrong.push(`${fact.node} was granted ${fact.lease} while it held ${other}`);
        held.set(fact.node, fact.lease);
        if (fact.kind === 'forward' && (bad.has(fact.hash) || (fact.recipe !== '' && bad.has(fact.recipe))))
          wrong.push(`${fact.lease} leads ${fact.node} forward to what is known-bad`);
      }
    }
    return wrong;
  },
};
