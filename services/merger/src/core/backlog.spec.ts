import type { Fragment } from '#libs/contracts';
import { MAX_DECISION_BYTES } from '#libs/engine';
import { accepted, factOf, file, linesOf } from '#libs/testing';
import { changeBody, Merger, rendered, sha256 } from './merger.fixture.js';
import { mergerCore } from './index.js';
import { MOST_NAMED, Queue, turnOf } from './queue.js';
import { canonicalJson } from '#libs/rules';

const LARGE = 'x'.repeat(270 * 1024);
const published = (sequence: number, ...fragments: readonly Fragment[]) =>
  ({
    type: 'published',
    sequence,
    source: 'me',
    text: JSON.stringify(changeBody(fragments)),
    storedMs: sequence,
  }) as const;
const names = (count: number, from = 1) => Array.from({ length: count }, (_, i) => `c${from + i}`);

describe('a backlog of large changes', () => {
  it('is accepted in several decisions, each of which stops at its limit', () => {
    const m = new Merger().fleet(['n0']);
    const inputs = [1, 2, 3, 4, 5].map((sequence) => published(sequence, file(`f${sequence}`, LARGE, 'nobody')));
    const first = m.decide(inputs);
    expect(linesOf(first.facts, 'change')).toEqual(['config.accepted c1', 'config.accepted c2']);
    expect([...first.waiting]).toEqual(inputs.slice(2));
    expect(first.more).toBe(true);
    expect(2 * LARGE.length).toBeGreaterThan(MAX_DECISION_BYTES);
    expect(linesOf(m.when(...inputs), 'change').filter((line) => line.startsWith('config.accepted'))).toEqual(
      names(5).map((change) => `config.accepted ${change}`),
    );
  });

  it('can contain a change that is larger than the limit', () => {
    const m = new Merger().fleet(['n0']);
    expect(linesOf(m.decide([published(1, file('f', LARGE + LARGE, 'nobody'))]).facts, 'change')).toEqual([
      'config.accepted c1',
    ]);
  });
});

describe('the digest of the committed state', () => {
  const lineOf = (one: Fragment) => `${one.kind}/${one.name} ${sha256(canonicalJson(one))}\n`;
  const digestsIn = (facts: readonly { readonly type: string }[]) =>
    facts.flatMap((fact) => (fact.type === 'config.committed' ? [(fact as { digest?: string }).digest] : []));

  it('is the sha256 of a sorted line for each fragment, in whatever order they were committed', () => {
    const [a, b, c] = [file('a', 'x'), file('b', 'y'), file('c', 'z')];
    const m = new Merger().fleet(['n0']);
    expect(digestsIn(m.commits(1, b))).toEqual([sha256(lineOf(b))]);
    expect(digestsIn(m.commits(2, c, a))).toEqual([sha256(lineOf(a) + lineOf(b) + lineOf(c))]);
    expect(digestsIn(m.commits(3, { gone: { kind: 'File', name: 'b' } }))).toEqual([sha256(lineOf(a) + lineOf(c))]);
    expect(digestsIn(m.commits(4, file('a', 'other')))).toEqual([sha256(lineOf(file('a', 'other')) + lineOf(c))]);
  });

  it('is computed without hashing fragments that the commit does not change', () => {
    let hashedBytes = 0;
    const counting = mergerCore((text) => {
      hashedBytes += text.length;
      return sha256(text);
    });
    const m = new Merger(undefined, counting).fleet(['n0']);
    for (let i = 1; i <= 4; i++) m.commits(i, file(`f${i}`, LARGE.slice(0, 50_000), 'nobody'));
    m.publishes(5, file('small', 'x', 'nobody'));
    m.starts('c5');
    hashedBytes = 0;
    m.completes('c5');
    expect(m.phase('c5')).toBe('committed');
    expect(hashedBytes).toBeLessThan(10_000);
  });

  it('is the same after a restart, where all committed fragments are hashed first, outside of decisions', () => {
    const m = new Merger().fleet(['n0']);
    m.commits(1, file('a', LARGE, 'nobody'));
    m.publishes(2, file('b', 'x', 'nobody'));
    m.starts('c2');
    m.given(factOf('rollout.complete', { change: 'c2' }));
    const here = digestsIn(m.about().facts);
    m.restart();
    expect(m.decide().needs).toMatchObject([{ do: 'hash-fragments' }]);
    expect(digestsIn(m.when())).toEqual(here);
  });
});

describe('a long queue', () => {
  const LONG = 300;
  /** All changes are open and touch the same node, each with its own fragment. */
  const queued = () =>
    new Merger().fleet(['n0']).given(...names(LONG).map((change) => accepted(change, { apply: [file(change, 'x')] })));

  it('names the latest changes that a change waits for, and compares it with no others', () => {
    const m = queued();
    let spent = 0;
    const queue = new Queue(m.state, (bytes) => (spent += bytes));
    const last = m.state.changes.get(`c${LONG}`);
    const turn = last === undefined ? undefined : turnOf(queue, last);
    expect(turn).toEqual({ is: 'waiting', waitsFor: names(MOST_NAMED, LONG - MOST_NAMED) });
    expect(spent).toBeLessThan(50 * MOST_NAMED);
    for (const change of queue.open) turnOf(queue, change);
    expect(spent).toBeLessThan(50 * MOST_NAMED * LONG);
  });

  it('records a new wait only for changes that waited for the one that ended', () => {
    const m = queued();
    m.when();
    m.starts('c1');
    const facts = m.completes('c1');
    expect(linesOf(facts, 'change')[0]).toBe('config.committed c1');
    expect(facts.filter(({ type }) => type === 'config.waiting')).toHaveLength(MOST_NAMED - 1);
    expect(rendered(facts)).toMatchObject([{ change: 'c2' }]);
  });

  it('is not checked again after a fact that cannot change whose turn it is', () => {
    const m = queued();
    m.when();
    const { queue, version } = m.state.progress;
    expect(queue).toEqual({ next: '', left: 0, version: version.get() });
    m.given(factOf('node.lease.settled', { node: 'n0', pool: 'default', kind: 'forward', because: 'applied' }));
    expect(m.decide()).toMatchObject({ facts: [], needs: [], memory: { queue: undefined } });
  });

  it('that is too long for one decision is checked by several, each of which continues where the last one stopped', () => {
    const many = 600;
    const m = new Merger()
      .fleet(['n0'])
      .given(...names(many).map((change) => accepted(change, { apply: [file(change, 'x', change)] })));
    const stops = new Set<string>();
    for (let [round, gathered, rests] = [0, new Map(), false]; !rests; round += 1) {
      expect(round).toBeLessThan(100);
      // Not `m.decide`: its checks of the whole state would take minutes here.
      const decision = m.core.decide(m.state, [], gathered, m.now);
      m.core.remember?.(m.state, decision.memory);
      m.ledger.append(decision.facts);
      m.read();
      gathered = new Map(m.gather(decision.needs));
      rests = decision.facts.length === 0 && decision.needs.length === 0 && !decision.more;
      if (decision.more && decision.needs.length === 0) stops.add(m.state.progress.queue.next);
    }
    expect(stops.size).toBeGreaterThan(0);
    expect(stops).not.toContain('');
    expect([...m.state.changes.values()].filter(({ phase }) => phase === 'rendered')).toHaveLength(many);
  });
});

it('does not keep the content of ended changes', () => {
  const m = new Merger().fleet(['n0']);
  m.commits(1, file('a', LARGE, 'nobody'));
  m.publishes(2, file('b', LARGE, 'nobody'));
  m.given(factOf('config.rejected', { change: 'c2', stage: 'review', attempt: 1 }));
  expect(JSON.stringify([...m.state.changes.values()]).length).toBeLessThan(5_000);
  expect(m.view('changes', 'c1').apply).toEqual([{ kind: 'File', name: 'a' }]);
  const old = m.core.dump(m.state) as { changes: [string, object][] };
  const before = { ...old, changes: old.changes.map(([name, one]) => [name, { ...one, apply: [file('a', LARGE)] }]) };
  expect(JSON.stringify(m.core.migrations?.[2]?.(before)).length).toBeLessThan(LARGE.length * 2);
});
