import type { NewFact } from '#libs/contracts';
import {
  accepted,
  changed,
  committed,
  ended,
  factOf,
  joined,
  pictureOf,
  renderedChange,
  renderedNode,
  reviewedNode,
  validated,
} from '#libs/testing';
import { grants, Scheduler } from './scheduler.fixture.js';

const CHANGE = { change: 'c7' } as const;
const STALE = { node: 'n0', lease: 'n0-l0', change: 'c1', pool: 'default', kind: 'forward', hash: 'c1-new' } as const;
const FREE = { ...STALE, node: 'n1', lease: 'n1-l1' } as const;
const NOBODY = { ...STALE, node: 'n9', lease: 'n9-l1' } as const;

/** A rollout in progress on n0, and n1 without a lease. */
const rolling = (): Scheduler => {
  const s = new Scheduler().fleet(['n0', 'n1']);
  s.rolls('c1', ['n0', 'n1']);
  return s;
};

describe('a fact about something that the fold does not know changes nothing:', () => {
  const ofChanges: readonly NewFact[] = [
    renderedChange('c7', {}),
    factOf('config.waiting', CHANGE),
    validated('c7'),
    factOf('config.rejected', CHANGE),
    ended('c7', 'reverted'),
    committed('c7'),
    factOf('config.judged', { ...CHANGE, lease: 'x-l1', hash: 'x' }),
    factOf('config.cleared', { hash: 'x', recipe: 'r' }),
    factOf('rollout.started', CHANGE),
    factOf('rollout.paused', CHANGE),
    factOf('rollout.resumed', CHANGE),
    factOf('rollout.aborted', CHANGE),
    factOf('rollout.failed', CHANGE),
    factOf('rollout.reverting', CHANGE),
    factOf('rollout.reverted', CHANGE),
    factOf('rollout.complete', CHANGE),
    factOf('rollout.succeeded', CHANGE),
    factOf('rollout.superseded', CHANGE),
    factOf('rollout.stalled', { ...CHANGE, nodes: ['n0'] }),
  ];
  const ofLeases = [STALE, FREE, NOBODY].flatMap((lease): readonly NewFact[] => [
    factOf('node.lease.applying', lease),
    factOf('node.lease.settled', { ...lease, because: 'failed' }),
    factOf('node.lease.uncordoning', lease),
    factOf('node.lease.released', { ...lease, because: 'failed' }),
    factOf('node.drained', lease),
    factOf('node.drain.stopped', { ...lease, outcome: 'failed', reason: 'x' }),
    factOf('node.uncordoned', lease),
  ]);
  const label = (fact: NewFact): string =>
    [fact.type, 'node' in fact ? fact.node : '', 'lease' in fact ? fact.lease : ''].join(' ').trim();

  it.each([...ofChanges, ...ofLeases].map((fact) => [label(fact), fact] as const))('%s', (_, fact) => {
    const s = rolling();
    const before = pictureOf(s.state);
    s.given(fact);
    expect(pictureOf(s.state)).toEqual(before);
  });

  it('a commit of a change that never started', () => {
    const s = new Scheduler().given(accepted('c1'));
    const before = pictureOf(s.state);
    expect(pictureOf(s.given(committed('c1')).state)).toEqual(before);
  });

  it('a deferral by an unknown rollout still defers the node', () => {
    const s = rolling().given(factOf('node.deferred', { node: 'n1', change: 'c7', reason: 'x' }));
    expect([s.status('n1').deferred, [...s.state.targets.keys()]]).toEqual(['x', ['c1/n0', 'c1/n1']]);
  });
});

describe('repeated and late facts', () => {
  const known = () => new Scheduler().fleet(['n0']);

  it('a join of a known node keeps everything that is known about it', () => {
    const s = known().given(factOf('node.silent', { node: 'n0' }), joined('n0'));
    expect(s.unavailable('default')).toEqual(['n0']);
  });

  it('a relabel does not bring back a node that has left', () => {
    const s = known().given(factOf('node.left', { node: 'n0' }), changed('n0', { zone: 'b' }));
    expect(s.why('n0').because).toBe('left');
    expect(s.view('pools', 'default').members).toBe(0);
  });

  it('a review of an earlier rendering, or of none, does not count for the current one', () => {
    const s = known().given(renderedNode('n0', 'x'), renderedNode('n0', 'y'), reviewedNode('n0', 'x'));
    expect([grants(s.when()), s.why('n0').because, s.status('n0').desired]).toEqual([[], 'in-review', 'old']);
    expect(grants(s.given(reviewedNode('n0', 'y')).when())).toEqual(['n0 join y']);
    const none = known().given(reviewedNode('n0', 'x'), reviewedNode('n1', 'x'));
    expect([grants(none.when()), none.status('n0').desired]).toEqual([[], 'old']);
  });

  const LABELS = [
    { role: 'edge', zone: 'b' },
    { zone: 'b', role: 'edge' },
  ] as const;
  it.each([
    [0, 0],
    [0, 1],
    [1, 0],
  ] as const)(
    'a relabel to the same labels in any order (%i, %i) does not make a rendering outdated',
    (first, second) => {
      const s = new Scheduler().given(
        joined('n0', LABELS[first]),
        renderedNode('n0', 'old'),
        reviewedNode('n0', 'old'),
      );
      s.nodeReports('n0', 'old');
      s.reviewed('c1', ['n0']).given(changed('n0', LABELS[second], ['bgp']));
      expect(grants(s.when())).toEqual(['n0 forward c1-new']);
    },
  );

  it('a join of a node that a change touches does not make the rendering outdated that was made for it', () => {
    const s = known().reviewed('c1', ['n0', 'n1']).given(joined('n1'));
    expect(grants(s.when())).toEqual(['n0 forward c1-new']);
  });
});
