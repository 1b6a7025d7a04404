import type { NewFact } from '#libs/contracts';
import { factOf } from '#libs/testing';
import { schedulerCore } from './index.js';

const lease = { node: 'n0', pool: 'default', lease: 'n0-l1', kind: 'forward' } as const;
const granted = factOf('node.lease.granted', { ...lease, phase: 'applying' });
const settled = (says: object): NewFact =>
  factOf('node.lease.settled', { ...lease, because: 'applied', released: true, ...says });
const released = factOf('node.lease.released', { ...lease, because: 'applied' });

describe('facts of one decision', () => {
  it.each([
    { what: 'new leases', facts: [granted, granted], may: true },
    { what: 'leases that ended well, with nothing to follow, and new ones', facts: [settled({}), granted], may: true },
    { what: 'a lease that ended well, but drains', facts: [settled({ released: false }), granted], may: false },
    {
      what: 'a lease that ended in another way, with nothing to follow',
      facts: [settled({ because: 'escalated' }), granted],
      may: false,
    },
    { what: 'a release', facts: [granted, released], may: false },
    {
      what: 'new leases, and the rollout that they are of',
      facts: [factOf('rollout.started', { change: 'c1' }), granted],
      may: false,
    },
    {
      what: 'the last lease, and that its rollout is complete',
      facts: [settled({}), factOf('rollout.complete', { change: 'c1' })],
      may: false,
    },
  ])('may be parted or not: $what: $may', ({ facts, may }) => {
    expect(schedulerCore.separable?.(facts)).toBe(may);
  });
});
