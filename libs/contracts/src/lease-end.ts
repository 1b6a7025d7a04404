import type { Fact, FactOf } from './facts.js';

/** Whether a lease is over with this fact, and its unit free: it was settled and nothing was left to be done, or what was left has been done. */
export const isLeaseEnd = (fact: Fact): fact is FactOf<'node.lease.settled'> | FactOf<'node.lease.released'> =>
  fact.type === 'node.lease.released' || (fact.type === 'node.lease.settled' && fact.released);
