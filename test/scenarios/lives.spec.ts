import fc from 'fast-check';
import type { Entry } from '#libs/engine';
import { changed, file, heard, left, pictureOf, pool, silent, type LedgerCopy } from '#libs/testing';
import { DRAIN, Installation, MINUTE, NONE, PAST_DEADLINE } from './installation.fixture.js';

const NODES = ['n0', 'n1', 'n2'] as const;
const node = fc.constantFrom(...NODES);
const role = fc.constantFrom('a', 'b');
const fragment = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .record({
        name: fc.constantFrom('one', 'two', 'three'),
        content: fc.constantFrom('x', 'y', 'bad', '{{ node.name }}', '{{ node.labels.zone }}'),
        role: fc.option(role, { nil: undefined }),
      })
      .map((fields) => file(fields.name, fields.content, fields.role)),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ role, budget: fc.constantFrom(1, 2, '50%') })
      .map((fields) => pool(fields.role, fields.budget)),
  },
);
const event = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('publish' as const),
      apply: fc.uniqueArray(fragment, { minLength: 1, maxLength: 2, selector: ({ kind, name }) => `${kind}/${name}` }),
      maxFailures: fc.nat(1),
      drains: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('delete' as const), name: fc.constantFrom('one', 'two', 'three') }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      does: fc.constant('answer' as const),
      node,
      verdict: fc.constantFrom('applied' as const, 'applied' as const, 'failed' as const, 'refused' as const),
      restored: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constantFrom(
        'silent' as const,
        'heard' as const,
        'leave' as const,
        'join' as const,
        'move' as const,
        'skip' as const,
      ),
      node,
      role,
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('pause' as const, 'abort' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('wait' as const), ms: fc.constantFrom(1_000, MINUTE, 10 * MINUTE) }),
  },
);
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never;

/** What can happen to a fleet. Nothing is in progress between two events. */
function handle(i: Installation, one: Event): void {
  switch (one.does) {
    case 'publish':
      i.actions = one.drains ? DRAIN : NONE;
      i.rolls(one.apply, { maxFailures: one.maxFailures });
      break;
    case 'delete':
      i.rolls([], { remove: [{ kind: 'File', name: one.name }] });
      break;
    case 'answer':
      answer(i, one.node, one.verdict, one.restored);
      break;
    case 'pause':
    case 'abort':
      for (const { change, phase } of i.scheduler.state.rollouts.values())
        if (phase === 'rolling') i.asks({ op: `rollout.${one.does}`, change, by: 'me', reason: '' });
      break;
    case 'wait':
      i.after(one.ms);
      break;
    default:
      fares(i, one.does, one.node, one.role);
  }
  drainAll(i);
}

function answer(i: Installation, name: string, verdict: 'applied' | 'failed' | 'refused', restored: boolean): void {
  const lease = i.scheduler.state.nodes.get(name)?.lease;
  if (lease === undefined || lease.phase === 'draining') return;
  if (lease.phase !== 'applying' && lease.because !== 'unknown') return;
  const isBad = i.text(name, lease.hash).includes('"bad"');
  i.answers(
    name,
    isBad && verdict === 'applied' && lease.kind === 'forward' ? 'invalid' : verdict,
    verdict === 'failed' ? { restored } : {},
  );
}

function fares(
  i: Installation,
  does: 'silent' | 'heard' | 'leave' | 'join' | 'move' | 'skip',
  name: string,
  to: string,
): void {
  const known = i.scheduler.state.nodes.get(name);
  const here = known?.joined === true;
  if (does === 'silent' && here && !known.silent) i.scheduler.given(silent(name));
  if (does === 'heard' && here && known.silent) i.scheduler.given(heard(name));
  if (does === 'leave' && here) i.scheduler.given(left(name));
  if (does === 'join' && !here) i.announces(name, { labels: { role: to } });
  if (does === 'move' && here) i.scheduler.given(changed(name, { role: to }, ['kind:File', 'action:reboot']));
  if (does === 'skip' && here) i.asks({ op: 'node.skip', node: name, by: 'me', reason: '' });
  i.quiet();
}

/** The external drainer answers at once. */
function drainAll(i: Installation): void {
  for (const name of NODES) {
    if (i.drain.read().state.drains.get(name)?.phase !== 'draining') continue;
    i.drain.when({ type: 'request', request: { op: 'drained', node: name, lease: '', evicted: 0, by: 'me' } });
    i.quiet();
  }
}

/** All nodes are heard from again, paused rollouts are resumed, and nodes carry out their leases. */
function heal(i: Installation): void {
  for (let round = 0, last = -1, rest = 0; round < 200 && rest < 8; round++) {
    rest = i.ledger.last === last ? rest + 1 : 0; // longer than the longest pause between two tries
    last = i.ledger.last;
    for (const name of NODES) {
      fares(i, 'heard', name, 'a');
      answer(i, name, 'applied', true);
      if (i.scheduler.state.nodes.get(name)?.report?.restored === false) i.announcesHealthy(name);
    }
    for (const { change, paused } of i.scheduler.state.rollouts.values())
      if (paused) i.asks({ op: 'rollout.resume', change, by: 'me', reason: '' });
    i.after(10 * MINUTE);
    drainAll(i);
  }
}

describe('a fleet with any history that is healthy in the end', () => {
  it('has ended every change, every node has its config, and all copies agree', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 14 }), (events) => {
        const i = new Installation().starts(['n0', 'n1'], { role: 'a' }).starts(['n2'], { role: 'b' });
        for (const one of events) handle(i, one);
        heal(i);
        expect([...i.merger.state.openChanges].map((change) => `${change} ${i.phase(change)}`)).toEqual([]);
        const wrong = [...i.scheduler.state.nodes.values()].filter(
          (one) =>
            one.joined &&
            one.desired !== undefined &&
            one.report?.hash !== one.desired.hash &&
            one.retry?.kind !== 'when-changed',
        );
        expect(wrong.map((one) => `${one.node} has ${one.report?.hash}, should have ${one.desired?.hash}`)).toEqual([]);
        for (const copy of i.copies) expect(pictureOf(refolded(copy))).toEqual(pictureOf(copy.read().state));
      }),
      { numRuns: Number(process.env['LIVES'] ?? 12) },
    );
  });
});

it('a decision of any core leaves its state unchanged, to the last byte of its dump', () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 8 }), (events) => {
      const i = new Installation().starts(['n0', 'n1'], { role: 'a' });
      for (const one of events) {
        handle(i, one);
        for (const copy of i.copies) unchangedBy(copy);
      }
    }),
    { numRuns: 5 },
  );
});

function unchangedBy<S>({ core, state, nowMs }: Pick<LedgerCopy<S, never>, 'core' | 'state' | 'nowMs'>): void {
  const before = JSON.stringify(core.dump(state));
  core.decide(state, [], new Map<string, never>(), {
    monotonicMs: nowMs + PAST_DEADLINE,
    leadingSinceMs: 0,
    wallMs: 0,
  });
  expect(JSON.stringify(core.dump(state))).toBe(before);
}

/** The fold of the same ledger by another copy. */
function refolded<S>(copy: Pick<LedgerCopy<S, never>, 'core' | 'ledger'>): S {
  const state = copy.core.initial();
  const entries: readonly Entry[] = copy.ledger.entries(0, 0, copy.core.reads);
  for (const entry of entries) copy.core.evolve(state, entry);
  return state;
}
