import fc from 'fast-check';
import type { NewFact } from '#libs/contracts';
import {
  accepted,
  changed,
  committed,
  ended,
  factOf,
  heard,
  joined,
  left,
  pictureOf,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { DRAIN, leading, NONE, Scheduler } from './scheduler.fixture.js';
import type { Input } from './index.js';
import { outcomeOf } from './lease.js';
import { Unavailability } from './unavailability.fixture.js';

/** Enough to find errors often. Use more to search longer: LIVES=500 npx jest … */
const RUNS = Number(process.env['LIVES'] ?? 30);
const NODES = ['n0', 'n1', 'n2', 'n3', 'n4'] as const;
const ROLES = ['a', 'b'] as const;
const node = fc.constantFrom(...NODES);

/** What may happen next. Numbers are converted to something that is possible in the current state. */
const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      is: fc.constantFrom('applied', 'failed', 'invalid', 'refused'),
      node,
      restored: fc.boolean(),
      again: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constantFrom(
        'silent',
        'heard',
        'left',
        'joined',
        'moved',
        'announced',
        'skipped',
        'out of service',
        'in service',
        'taken',
        'given',
      ),
      node,
      role: fc.constantFrom(...ROLES),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constant('change'),
      nodes: fc.subarray([...NODES], { minLength: 1 }),
      drains: fc.boolean(),
      maxFailures: fc.nat(2),
      budget: fc.option(fc.integer({ min: 1, max: 3 })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ is: fc.constantFrom('paused', 'resumed', 'aborted') }) },
  {
    weight: 3,
    arbitrary: fc.record({ is: fc.constant('time'), ms: fc.constantFrom(1_000, 60_000, 120_000, 600_000) }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('restarted') }) },
);
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never;
type EventOf<K extends string> = Extract<Event, Readonly<Record<K, unknown>>>;

/** A fleet, and the other services as far as they answer the scheduler. */
class Life {
  readonly s = new Scheduler();
  readonly seen = new Unavailability();
  private changes = 0;
  private generation = 1;
  private readonly sent: Input[] = [];
  private read = 0;

  constructor() {
    const { s } = this;
    s.given(
      accepted('c9000', { apply: [pool('a', 1), pool('b', '50%')] }),
      renderedChange('c9000', {}),
      validated('c9000'),
    ).when();
    s.given(committed('c9000')).when();
    NODES.forEach((name, i) => s.fleet([name], { role: ROLES[i % 2] ?? 'a' }));
    this.check();
  }

  handle(event: Event): void {
    this.act(event);
    this.s.when();
    this.others();
    this.check();
  }

  private act(event: Event): void {
    const { s } = this;
    if ('restored' in event) return this.answers(event);
    if ('ms' in event) return void s.after(event.ms);
    if ('nodes' in event) return this.publishes(event);
    if ('role' in event) return this.fares(event);
    const open = [...s.state.rollouts.values()].find(({ phase }) => phase === 'rolling')?.change;
    if (event.is === 'restarted') s.restart();
    else if (open === undefined) return;
    else if (event.is === 'paused') s.pauses(open);
    else if (event.is === 'resumed') s.resumes(open);
    else s.aborts(open);
  }

  private answers(event: EventOf<'restored'>): void {
    const { s } = this;
    if (event.again && this.sent.length > 0) return void s.when(...this.sent.slice(-4).reverse());
    const lease = s.state.nodes.get(event.node)?.lease;
    if (lease === undefined || lease.phase === 'draining' || lease.phase.startsWith('uncordon')) return;
    const verdict = event.is as 'applied' | 'failed' | 'invalid' | 'refused';
    const message = s.answer(
      event.node,
      verdict,
      verdict === 'applied' ? { hash: lease.hash } : { restored: event.restored },
    );
    this.sent.push(message);
    s.when(message);
  }

  private fares(event: EventOf<'role'>): void {
    const { s } = this;
    const known = s.state.nodes.get(event.node);
    const here = known?.joined === true;
    switch (event.is) {
      case 'silent':
        return void (here && !known.silent && s.given(silent(event.node)));
      case 'heard':
        return void (here && known.silent && s.given(heard(event.node)));
      case 'left':
        return void (here && s.given(left(event.node)));
      case 'joined':
        return void (
          here ||
          s.given(
            joined(event.node, { role: event.role }),
            renderedNode(event.node, 'old'),
            reviewedNode(event.node, 'old'),
          )
        );
      case 'out of service':
        return void (here && s.given(factOf('node.unavailable', { node: event.node, because: 'NotReady' })));
      case 'in service':
        return void (here && s.given(factOf('node.available', { node: event.node })));
      case 'taken':
        return void s.asks({ op: 'pool.take', node: event.node, pool: '', owner: event.role, reason: '', by: 'me' });
      case 'given':
        return void s.asks({ op: 'pool.give', node: event.node, owner: event.role, by: 'me' });
      case 'moved':
        return void (here && s.given(changed(event.node, { role: event.role })));
      case 'announced':
        return void s.nodeReports(event.node, known?.report?.hash ?? 'empty', {
          lease: known?.report?.lease ?? '',
          verdict: known?.report?.verdict ?? '',
        });
      default:
        return void s.skips(event.node);
    }
  }

  private publishes(event: EventOf<'nodes'>): void {
    const { s } = this;
    const nodes = event.nodes.filter(
      (name) => s.state.nodes.get(name)?.joined === true && s.state.nodes.get(name)?.change === undefined,
    );
    s.actions = event.drains ? DRAIN : NONE;
    this.changes += 1;
    const change = `c${this.changes}`;
    const targets = Object.fromEntries(
      nodes.map((name) => [
        name,
        { from: s.state.nodes.get(name)?.desired?.hash ?? 'empty', to: `h${this.changes % 4}`, recipe: '' },
      ]),
    );
    const apply = event.budget === null ? [] : [pool('a', event.budget)];
    s.given(
      accepted(change, { maxFailures: event.maxFailures, apply }),
      renderedChange(change, targets),
      validated(change),
    );
  }

  /** The drain service, the validator and the merger: they act at once, and always in the same way. */
  private others(): void {
    const { s } = this;
    for (let more = true; more; s.when()) {
      const facts: NewFact[] = [];
      for (const { node: name, lease } of s.state.nodes.values()) {
        if (lease?.phase === 'draining' && lease.drain !== 'done')
          facts.push(factOf('node.drained', { node: name, lease: lease.id, pool: lease.pool }));
        if (lease?.phase === 'uncordoning')
          facts.push(factOf('node.uncordoned', { node: name, lease: lease.id, pool: lease.pool }));
      }
      for (const [lease, change] of s.state.unjudged.entries())
        facts.push(
          factOf('config.judged', {
            hash: `judged-${lease}`,
            lease,
            change,
            clearedBecause: 'so that it can be had again',
          }),
        );
      for (const { change, phase } of s.state.rollouts.values()) {
        if (s.state.changes.get(change)?.open !== true) continue;
        if (phase === 'complete') facts.push(committed(change, (this.generation += 1)));
        if (phase === 'reverted') facts.push(ended(change, 'reverted'));
      }
      more = facts.length > 0;
      s.given(...facts);
    }
  }

  private check(): void {
    for (const fact of this.s.ledger.facts.slice(this.read)) this.seen.evolve(fact);
    this.read = this.s.ledger.last;
    expect(this.seen.overdrafts).toEqual([]);
  }
}

const lives = fc.array(event, { maxLength: 40 });

describe('with any history', () => {
  it('no grant exceeds the budget of its pool, and no node has two leases', () => {
    fc.assert(
      fc.property(lives, (events) => {
        const life = new Life();
        for (const one of events) life.handle(one);
      }),
      { numRuns: RUNS },
    );
  });

  it('a new copy that folds the same ledger has the same state', () => {
    fc.assert(
      fc.property(lives, (events) => {
        const life = new Life();
        for (const one of events) life.handle(one);
        expect(pictureOf(new Scheduler(life.s.ledger).read().state)).toEqual(pictureOf(life.s.state));
      }),
      { numRuns: RUNS / 3 },
    );
  });

  it('once all nodes are healthy and nothing more is requested, every rollout ends and every node has its config', () => {
    fc.assert(
      fc.property(lives, (events) => {
        const life = new Life();
        for (const one of events) life.handle(one);
        heal(life);
        const open = [...life.s.state.rollouts.values()].filter(
          ({ phase }) => phase === 'rolling' || phase === 'reverting',
        );
        expect(open.map(({ change, phase }) => `${change} ${phase}`)).toEqual([]);
        const wrong = [...life.s.state.nodes.values()].filter(
          (one) =>
            one.joined &&
            one.desired !== undefined &&
            one.report?.hash !== one.desired.hash &&
            one.retry?.kind !== 'when-changed',
        );
        expect(wrong.map((one) => `${one.node} ${one.report?.hash} ${one.desired?.hash} ${one.deferred}`)).toEqual([]);
      }),
      { numRuns: RUNS / 3 },
    );
  });
});

/** All nodes answer, and report that they are healthy. */
function heal(life: Life): void {
  for (let round = 0; round < 60; round++) {
    for (const name of NODES) {
      const known = life.s.state.nodes.get(name);
      if (known?.joined !== true) continue;
      if (known.silent) life.handle({ is: 'heard', node: name, role: 'a' });
      if (known.lease?.phase === 'applying' || outcomeOf(known.lease) === 'unknown')
        life.handle({ is: 'applied', node: name, restored: true, again: false });
      else if (known.report?.restored === false)
        life.s.nodeReports(name, known.report.hash, { lease: known.report.lease, verdict: 'failed', restored: true });
    }
    const paused = [...life.s.state.rollouts.values()].find((one) => one.paused && one.phase === 'rolling');
    if (paused !== undefined) life.s.resumes(paused.change);
    life.handle({ is: 'time', ms: 600_000 });
  }
}

describe('reports', () => {
  it('have the same result in any order, however often they are repeated', () => {
    const steps = fc.array(
      fc.record({
        hash: fc.constantFrom('a', 'b', 'c'),
        verdict: fc.constantFrom('applied' as const, 'failed' as const, '' as const),
        lease: fc.constantFrom('n0-l1', 'n0-l0', ''),
      }),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(steps, fc.infiniteStream(fc.nat()), (drawn, chance) => {
        const begin = () => {
          const s = new Scheduler().fleet(['n0']);
          s.rolls('c1', ['n0'], { to: 'a' });
          return s;
        };
        const inOrder = begin();
        const messages = drawn.map((fields, i) => inOrder.message('n0', fields.hash, { ...fields, seq: 100 + i }));
        inOrder.when(...messages);
        const shuffled = begin();
        const pick = () => messages[(chance.next().value as number) % messages.length] as Input;
        shuffled.when(...messages.flatMap((message) => [message, pick()]), ...messages);
        // Redelivering the same facts anywhere does not process them again.
        expect({ ...shuffled.status('n0'), leaseLedger: 0 }).toEqual({ ...inOrder.status('n0'), leaseLedger: 0 });
        const redelivered = begin();
        const duplicated = messages.flatMap((message, i) => [message, ...messages.slice(0, i + 1)]);
        redelivered.when(...duplicated);
        expect(redelivered.ledger.facts.map(({ at: _, ...fact }) => fact)).toEqual(
          inOrder.ledger.facts.map(({ at: _, ...fact }) => fact),
        );
      }),
      { numRuns: 60 },
    );
  });
});

describe('the config of a node after all its reports', () => {
  it('is that of the latest, in whatever order they arrive', () => {
    const stamps = fc.uniqueArray(
      fc.record({ incarnation: fc.integer({ min: 1, max: 3 }), seq: fc.integer({ min: 1, max: 5 }) }),
      { minLength: 1, maxLength: 8, selector: ({ incarnation, seq }) => `${incarnation}.${seq}` },
    );
    fc.assert(
      fc.property(
        stamps.chain((list) => fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }))),
        ([list, order]) => {
          const s = new Scheduler().given(...leadingNowhere());
          for (const { incarnation, seq } of order)
            s.nodeReports('n0', `${incarnation}.${seq}`, { incarnation, nonce: incarnation, seq });
          const latest = [...list].sort((a, b) => a.incarnation - b.incarnation || a.seq - b.seq).at(-1);
          expect(s.status('n0').hash).toBe(`${latest?.incarnation}.${latest?.seq}`);
        },
      ),
    );
  });
});

const leadingNowhere = (): readonly NewFact[] => [
  joined('n0'),
  accepted('c1'),
  renderedChange('c1', leading([], '', '')),
];
