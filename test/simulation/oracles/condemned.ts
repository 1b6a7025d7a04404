import { Violation, type Oracle } from '../world.js';

/** I3: after a condemnation no forward lease leads to that hash or recipe. */
export function condemned(): Oracle {
  const bad = new Set<string>();
  return {
    name: 'I3 condemned',
    onFact(_world, fact) {
      if (fact.type === 'config.judged' && fact.condemned) for (const key of [fact.hash, fact.recipe]) bad.add(key);
      if (fact.type === 'config.forgiven') for (const key of [fact.hash, fact.recipe]) bad.delete(key);
      if (
        fact.type === 'node.lease.granted' &&
        fact.kind === 'forward' &&
        (bad.has(fact.hash) || (fact.recipe !== '' && bad.has(fact.recipe)))
      ) {
        throw new Violation(`${fact.lease} leads forward to ${fact.hash.slice(0, 12)}, which is condemned`);
      }
    },
  };
}
