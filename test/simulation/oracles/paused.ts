import { Violation, type Oracle } from '../world.js';

/** I6: from the answer to a pause on, no forward lease of that rollout is granted. */
export function paused(): Oracle {
  const stopped = new Set<string>();
  return {
    name: 'I6 paused',
    onAnswer(_world, request, answer) {
      const { op, change } = request as { readonly op: string; readonly change: string };
      if (op === 'rollout.pause' && answer.ok && (answer.body as { readonly paused: boolean }).paused) stopped.add(change);
    },
    onFact(_world, fact) {
      if (fact.type === 'rollout.resumed') stopped.delete(fact.change);
      if (fact.type === 'node.lease.granted' && fact.kind === 'forward' && stopped.has(fact.change)) throw new Violation(`${fact.lease} is granted though ${fact.change} is paused`);
    },
  };
}
