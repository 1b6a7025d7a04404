import type { Fact } from '#libs/contracts';
import type { Oracle } from './oracle.js';

/**
 * I5: a node whose lease has a drain works only after the drainer has reported it as drained, and before the drainer
 * gives it back. In the end, all nodes are given back.
 */
export const drains: Oracle = {
  name: 'I5 drains',
  judge({ facts, works, drainer, held }) {
    const drained = new Map<string, number>();
    const returned = new Map<string, number>();
    for (const { did, lease, atMs } of drainer) {
      if (did === 'drained' && !drained.has(lease)) drained.set(lease, atMs);
      if (did === 'returned' && !returned.has(lease)) returned.set(lease, atMs);
    }
    const withDrain = new Set(facts.flatMap(drainedLease));
    const ofLeases = works.filter(({ lease }) => withDrain.has(lease));
    return [
      ...ofLeases
        .filter(({ lease, fromMs }) => !((drained.get(lease) ?? Infinity) <= fromMs))
        .map(({ node, lease }) => `${node} began to work on ${lease} before the drainer said that it is free`),
      ...ofLeases
        .filter(({ lease, toMs }) => (returned.get(lease) ?? Infinity) < toMs)
        .map(({ node, lease }) => `${node} was still at work on ${lease} when the drainer gave it back`),
      ...[...held].map(([node, lease]) => `${node} is still held for ${lease}`),
    ];
  },
};

const drainedLease = (fact: Fact): readonly string[] =>
  fact.type === 'node.lease.granted' && fact.actions.some(({ kind }) => kind === 'drain') ? [fact.lease] : [];
