import { eventsOf } from './events.js';
import { sha256 } from './gateway.fixture.js';
import type { Status } from './resource.js';

const status = (phase: string, more: object = {}): Status => ({
  phase,
  change: 'c1',
  message: '',
  observedGeneration: 1,
  ...more,
});
const firstEvent = (before: Status | undefined, now: Status, uid = 'u') =>
  eventsOf({ name: 'motd', uid }, before, now, sha256)[0];

it.each([
  ['Rejected', { message: 'spec.path: must be absolute' }, 'Warning', 'c1: spec.path: must be absolute'],
  ['Rejected', { change: undefined, message: 'spec.path: must be absolute' }, 'Warning', 'spec.path: must be absolute'],
  ['Waiting', { message: 'waits for c0' }, 'Normal', 'c1: waits for c0'],
  ['Rolling', {}, 'Normal', 'c1'],
  ['Rolling', { change: undefined, progress: '0/3' }, 'Normal', '0/3 nodes'],
  ['Ready', { applied: 3, nodes: 3 }, 'Normal', 'c1: 3 of 3 nodes'],
  ['Reverted', { applied: 0, nodes: 3, message: 'n1: the probe fails' }, 'Warning', 'c1: n1: the probe fails'],
])('%s with %j is written', (phase, more, type, message) => {
  expect(firstEvent(status('Reviewing'), status(phase, more))).toMatchObject({ type, reason: phase, message });
});

it('are not written for an object under review, nor for growing counts', () => {
  expect([
    firstEvent(undefined, status('Pending')),
    firstEvent(status('Pending'), status('Reviewing')),
    firstEvent(status('Rolling', { applied: 1 }), status('Rolling', { applied: 2 })),
  ]).toEqual([undefined, undefined, undefined]);
});

it('are written again for another change, and for another refusal of the same object', () => {
  expect(firstEvent(status('Ready'), status('Ready', { change: 'c2' }))?.reason).toBe('Ready');
  expect(firstEvent(status('Rejected', { message: 'one' }), status('Rejected', { message: 'two' }))?.message).toBe(
    'c1: two',
  );
});

it('have an id that is derived from their content, so that none is written twice', () => {
  const first = firstEvent(status('Rolling'), status('Ready'));
  expect([firstEvent(undefined, status('Ready'))?.name, first?.name]).toEqual([
    first?.name,
    expect.stringMatching(/^motd\.[0-9a-f]{16}$/),
  ]);
  expect(
    new Set([
      first?.name,
      firstEvent(undefined, status('Ready', { change: 'c2' }))?.name,
      firstEvent(undefined, status('Rejected'))?.name,
      firstEvent(undefined, status('Ready'), 'another')?.name,
    ]).size,
  ).toBe(4);
});
