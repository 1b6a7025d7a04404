import type { NewFact } from '#libs/contracts';
import { factOf } from '#libs/testing';
import { schedulerCore } from './index.js';

const lease = { node: 'n0', pool: 'default', lease: 'n0-l1', kind: 'forward' } as const;
const granted = factOf('node.lease.granted', { ...lease, phase: 'applying' });
const settled = (fields: object): NewFact =>
  factOf('node.lease.settled', { ...lease, because: 'applied', released: true, ...fields });
const released = factOf('node.lease.released', { ...lease, because: 'applied' });

describe('the facts of one decision', () => {
  it.each([
    { what: 'new leases', facts: [granted, granted], may: true },
    { what: 'leases that ended well and are released, and new leases', facts: [settled({}), granted], may: true },
    {
      what: 'a lease that ended well, but is not released yet',
      facts: [settled({ released: false }), granted],
      may: false,
    },
    {
      what: 'a lease that did not end well',
      facts: [settled({ because: 'escalated' }), granted],
      may: false,
    },
    { what: 'a release', facts: [granted, released], may: false },
    {
      what: 'new leases, and the start of their rollout',
      facts: [factOf('rollout.started', { change: 'c1' }), granted],
      may: false,
    },
    {
      what: 'the end of the last lease, and of its rollout',
      facts: [settled({}), factOf('rollout.complete', { change: 'c1' })],
      may: false,
    },
  ])('may be appended separately: $what: $may', ({ facts, may }) => {
    expect(schedulerCore.separable?.(facts)).toBe(may);
  });
});
