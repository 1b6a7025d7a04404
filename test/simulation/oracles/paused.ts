import { Violation, type Oracle } from '../world/world.js';

/**
 * I6: after the answer to a pause, no forward lease of that rollout is granted, and none of a rollout that corrects it.
 */
export function paused(): Oracle {
  const stopped = new Set<string>();
  const resumed = new Set<string>();
  /** According to the ledger. */
  const held = new Set<string>();
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
      // A pause and its end may be in one batch. They are answered after it.
      if (fact.type === 'rollout.paused') {
        resumed.delete(fact.change);
        held.add(fact.change);
      }
      if (fact.type === 'rollout.started' && fact.replaces.some((older) => held.has(older))) stopped.add(fact.change);
      if (fact.type === 'rollout.resumed') {
        resumed.add(fact.change);
        stopped.delete(fact.change);
        held.delete(fact.change);
      }
      if (fact.type === 'node.lease.granted' && fact.kind === 'forward' && stopped.has(fact.change))
        throw new Violation(`${fact.lease} is granted though ${fact.change} is paused`);
    },
  };
}
