import { Violation, type Oracle } from '../world/world.js';

/** I6: from the answer to a pause on, no forward lease of that rollout is granted. */
export function paused(): Oracle {
  const stopped = new Set<string>();
  const resumed = new Set<string>();
  return {
    name: 'I6 paused',
    onAnswer(_world, request, answer) {
      const { op, change } = request as { readonly op: string; readonly change: string };
      if (
        op === 'rollout.pause' &&
        answer.ok &&
        (answer.body as { readonly paused: boolean }).paused &&
        !resumed.has(change)
      )
        stopped.add(change);
    },
    onFact(_world, fact) {
      // A pause and its end may stand in one batch, and are answered after it.
      if (fact.type === 'rollout.paused') resumed.delete(fact.change);
      if (fact.type === 'rollout.resumed') {
        resumed.add(fact.change);
        stopped.delete(fact.change);
      }
      if (fact.type === 'node.lease.granted' && fact.kind === 'forward' && stopped.has(fact.change))
        throw new Violation(`${fact.lease} is granted though ${fact.change} is paused`);
    },
  };
}
