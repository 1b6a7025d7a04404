import { Violation, type Oracle } from '../world/world.js';

/** I3: after a config is known-bad, no forward lease leads to its hash or recipe. */
export function knownBad(): Oracle {
  const bad = new Set<string>();
  return {
    name: 'I3 known-bad',
    onFact(_world, fact) {
      if (fact.type === 'config.judged' && fact.knownBad) for (const key of [fact.hash, fact.recipe]) bad.add(key);
      if (fact.type === 'config.cleared') for (const key of [fact.hash, fact.recipe]) bad.delete(key);
      if (
        fact.type === 'node.lease.granted' &&
        fact.kind === 'forward' &&
        (bad.has(fact.hash) || (fact.recipe !== '' && bad.has(fact.recipe)))
      ) {
        throw new Violation(`${fact.lease} leads forward to ${fact.hash.slice(0, 12)}, which is known-bad`);
      }
    },
  };
}
