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
const told = (before: Status | undefined, now: Status, uid = 'u') =>
  eventsOf({ name: 'motd', uid }, before, now, sha256)[0];

it.each([
  ['Rejected', { message: 'spec.path: must be absolute' }, 'Warning', 'c1: spec.path: must be absolute'],
  ['Rejected', { change: undefined, message: 'spec.path: must be absolute' }, 'Warning', 'spec.path: must be absolute'],
  ['Waiting', { message: 'waits for c0' }, 'Normal', 'c1: waits for c0'],
  ['Rolling', {}, 'Normal', 'c1'],
  ['Rolling', { change: undefined, progress: '0/3' }, 'Normal', '0/3 nodes'],
  ['Ready', { applied: 3, nodes: 3 }, 'Normal', 'c1: 3 of 3 nodes'],
  ['Reverted', { applied: 0, nodes: 3, message: 'n1: the probe fails' }, 'Warning', 'c1: n1: the probe fails'],
])('%s with %j is told', (phase, more, type, message) => {
  expect(told(status('Reviewing'), status(phase, more))).toMatchObject({ type, reason: phase, message });
});

it('says nothing of what is on its way to be looked at, nor of counts that grow', () => {
  expect([
    told(undefined, status('Pending')),
    told(status('Pending'), status('Reviewing')),
    told(status('Rolling', { applied: 1 }), status('Rolling', { applied: 2 })),
  ]).toEqual([undefined, undefined, undefined]);
});

it('tells the same of another change, and another refusal of the same object', () => {
  expect(told(status('Ready'), status('Ready', { change: 'c2' }))?.reason).toBe('Ready');
  expect(told(status('Rejected', { message: 'one' }), status('Rejected', { message: 'two' }))?.message).toBe('c1: two');
});

it('names what happened by what it was, so that nobody tells it twice', () => {
  const first = told(status('Rolling'), status('Ready'));
  expect([told(undefined, status('Ready'))?.name, first?.name]).toEqual([
    first?.name,
    expect.stringMatching(/^motd\.[0-9a-f]{16}$/),
  ]);
  expect(
    new Set([
      first?.name,
      told(undefined, status('Ready', { change: 'c2' }))?.name,
      told(undefined, status('Rejected'))?.name,
      told(undefined, status('Ready'), 'another')?.name,
    ]).size,
  ).toBe(4);
});
