import {
  accepted,
  committed,
  ended,
  factOf,
  left,
  linesOf,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import {
  DRAIN,
  grants,
  leading,
  MINUTE,
  deferred,
  PAST_DEADLINE,
  Scheduler,
  settledAs,
  types,
} from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const drained = (node: string) => factOf('node.drained', { node, lease: `${node}-l1`, pool: 'default' });
const uncordoned = (node: string) => factOf('node.uncordoned', { node, lease: `${node}-l1`, pool: 'default' });
const stopped = (outcome: 'failed' | 'deferred') =>
  factOf('node.drain.stopped', { node: 'n0', lease: 'n0-l1', pool: 'default', outcome, reason: 'x' });
const draining = (...names: readonly string[]): Scheduler => {
  const s = fleetOf(...names);
  s.actions = DRAIN;
  s.rolls('c1', names);
  return s;
};
const inPool = (budget: number, ...names: readonly string[]): Scheduler => {
  const s = new Scheduler().given(
    accepted('c9', { apply: [pool('edge', budget)] }),
    renderedChange('c9', {}),
    validated('c9'),
  );
  s.when();
  return s.given(committed('c9')).fleet(names, { role: 'edge' });
};

describe('a drain', () => {
  it.each([
    ['that failed', (s: Scheduler) => s.given(stopped('failed')).when(), 'failed'],
    ['that was deferred', (s: Scheduler) => s.given(stopped('deferred')).when(), 'cancelled'],
    ['that did not end', (s: Scheduler) => s.after(10 * MINUTE), 'failed'],
    ['whose rollout is reverting', (s: Scheduler) => s.aborts('c1'), 'cancelled'],
  ])('%s leaves the node unchanged, and says so', (_, act, because) => {
    const facts = act(draining('n0'));
    expect(facts.filter(({ type }) => type === 'node.lease.settled')).toMatchObject([{ because, restored: true }]);
  });

  it('is cancelled if its node leaves the rollout because of a relabel, although the rollout continues', () => {
    const s = draining('n0', 'n1');
    const facts = s
      .given(factOf('node.rendered', { node: 'n0', hash: 'other', recipe: 'r', outdatedIn: ['c1'] }))
      .when();
    expect(settledAs(facts)).toEqual(['n0 cancelled']);
    expect(s.rollout('c1').phase).toBe('rolling');
  });

  it('counts as in progress until then, so nothing is complete or stalled', () => {
    const s = draining('n0', 'n1');
    expect(s.view('rollouts', 'c1').pools).toEqual({
      default: { nodes: 2, done: 0, active: 1, untouched: 0, degraded: 0 },
    });
    s.given(silent('n0'));
    expect(s.when()).toEqual([]);
  });
});

describe('a lease that reaches its deadline', () => {
  it('is on its way to `released` in the same batch', () => {
    const s = draining('n0');
    s.nowMs += 10 * MINUTE;
    expect(types(s.decide().facts)).toEqual(expect.arrayContaining(['node.lease.settled', 'node.lease.uncordoning']));
  });
});

describe('a lease that has ended and is not released', () => {
  it('stops its node from being skipped as silent, or taken, until it is released', () => {
    const s = draining('n0');
    s.given(drained('n0')).when();
    expect(types(s.leaseEnds('n0', 'refused'))).toContain('node.lease.uncordoning');
    expect(s.given(silent('n0')).when()).toEqual([]);
    expect(deferred(s.given(uncordoned('n0')).when())).toEqual(['n0: silent']);
  });

  it('is released by a report during uncordoning, even if its node was skipped before its time is over', () => {
    const s = draining('n0');
    s.given(drained('n0')).when();
    expect(types(s.skips('n0'))).toContain('node.lease.uncordoning');
    expect(s.given(uncordoned('n0')).when()).toEqual([]);
    expect(types(s.nodeReports('n0', 'old', { lease: 'n0-l1', verdict: 'refused' }))).toContain('node.lease.released');
  });

  it('is not answered by an earlier report, and is held until a later one', () => {
    const s = draining('n0');
    s.nodeReports('n0', 'old', { lease: 'n0-l1' });
    s.given(drained('n0')).when();
    expect(types(s.after(PAST_DEADLINE))).toContain('node.unknown');
    expect([s.lease('n0').phase, s.unavailable('default')]).toEqual(['settled', ['n0']]);
  });

  it('schedules no decision while its view may not be written', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.showViews = () => undefined;
    s.given(silent('n0')).skips('n0');
    expect(s.decide().wakeAtMs).toBeUndefined();
  });
});

describe('a node that was skipped', () => {
  const corrected = () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'strange');
    return s;
  };

  it('because of its lease, and is alive, stays skipped until the lease is released', () => {
    const s = corrected();
    s.skips('n0');
    expect(s.status('n0').skipped).toBe('me');
    s.after(2 * MINUTE);
    expect(s.status('n0').skipped).toBe('');
  });

  it('and is silent stays skipped', () => {
    const s = corrected().given(silent('n0'));
    s.skips('n0');
    expect(types(s.after(2 * MINUTE))).toEqual(['node.lease.released']);
    expect([s.status('n0').skipped, s.unavailable('default')]).toEqual(['me', []]);
  });

  it('in a rollout stays skipped after its lease, until the rollout has ended', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.skips('n0');
    s.after(2 * MINUTE);
    expect(s.lease('n0').phase).toBe('released');
    expect(s.status('n0').skipped).toBe('me');
  });
});

describe('a lease outside a rollout', () => {
  it('does not create a rollout to list', () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'strange');
    expect(s.lease('n0')).toMatchObject({ kind: 'corrective', change: '' });
    expect([...s.state.rollouts.keys()]).toEqual([]);
    s.leaseEnds('n0', 'failed');
    expect([[...s.state.rollouts.keys()], [...s.state.targets.keys()]]).toEqual([[], []]);
  });

  it("that ends as invalid is deferred with the node's reason", () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'strange');
    expect(deferred(s.leaseEnds('n0', 'invalid'))).toEqual(['n0: corrective lease ended as invalid: it is invalid']);
  });

  it('without an answer is tried again a minute after its end, not as soon as it is answered', () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'strange');
    expect(settledAs(s.after(2 * MINUTE))).toEqual(['n0 unknown']);
    expect(types(s.nodeReports('n0', 'strange', { lease: 'n0-l1', verdict: 'refused' }))).toContain(
      'node.lease.released',
    );
    expect(s.after(MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n0 corrective old']);
  });

  it('that was applied ends the deferral, even if the node should have a newer config by then', () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'failed');
    expect(grants(s.after(MINUTE))).toEqual(['n0 corrective old']);
    s.given(renderedNode('n0', 'newer'), reviewedNode('n0', 'newer'));
    expect(s.status('n0').deferred).not.toBe('');
    expect(grants(s.applies('n0'))).toEqual(['n0 corrective newer']);
    expect(s.status('n0').deferred).toBe('');
  });

  it('to a missing config is deferred, and tried again after 1, 2 … minutes', () => {
    const s = fleetOf('n0');
    s.lost.add('old');
    const facts = s.nodeReports('n0', 'strange').filter(({ type }) => type === 'node.deferred');
    expect(facts).toEqual([
      expect.objectContaining({ node: 'n0', lease: '', change: '', pool: 'default', reason: 'old is lost' }),
    ]);
    expect(s.after(MINUTE - 1)).toEqual([]);
    expect(deferred(s.after(1))).toEqual(['n0: old is lost']);
    s.lost.clear();
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n0 corrective old']);
  });
});

describe('an invalid report', () => {
  it('counts as one failure of its rollout', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.leaseEnds('n0', 'invalid');
    expect(s.rollout('c1')).toMatchObject({ failed: 1, unknown: 0 });
  });

  it('in a rollout does not keep the node from its desired config outside rollouts', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.leaseEnds('n0', 'invalid');
    s.given(
      factOf('config.judged', {
        hash: 'c1-new',
        lease: 'n0-l1',
        change: 'c1',
        node: 'n0',
        clearedBecause: 'it serves elsewhere',
      }),
    ).when();
    s.given(ended('c1', 'reverted'), renderedNode('n0', 'c1-new'), reviewedNode('n0', 'c1-new'));
    expect(grants(s.when())).toEqual(['n0 join c1-new']);
  });

  it('does not affect a rollout that is already reverting', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('a', 1), pool('b', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['a0'], { role: 'a' }).fleet(['b0'], { role: 'b' });
    s.rolls('c1', ['a0'], { to: 'same' });
    s.rolls('c2', ['b0'], { to: 'same' });
    const { lease } = s.lease('b0');
    s.aborts('c2');
    s.when(s.message('b0', 'same', { kind: 'applied', lease, verdict: 'applied' }));
    expect([s.rollout('c2').phase, s.lease('b0').kind]).toEqual(['reverting', 'rollback']);
    expect(linesOf(s.leaseEnds('a0', 'invalid'), 'change').filter((line) => line.startsWith('rollout.failed'))).toEqual(
      ['rollout.failed c1'],
    );
  });

  it('without a known recipe does not delay changes without one', () => {
    const s = fleetOf('n0', 'x').given(
      accepted('c0'),
      renderedChange('c0', { x: { from: 'old', to: 'bad', recipe: '' } }),
      validated('c0'),
    );
    s.when();
    s.given(accepted('c1'), renderedChange('c1', { n0: { from: 'old', to: 'fine', recipe: '' } }), validated('c1'));
    expect([...s.leaseEnds('x', 'invalid')].map(({ type }) => type)).toContain('rollout.started');
  });

  it('that is known-bad without a known recipe does not block configs without one', () => {
    const s = fleetOf('n0', 'x').given(
      factOf('config.judged', { hash: 'bad', recipe: '', lease: 'x-l1', change: 'c0', node: 'x', knownBad: true }),
    );
    s.given(accepted('c1'), renderedChange('c1', { n0: { from: 'old', to: 'fine', recipe: '' } }), validated('c1'));
    expect(grants(s.when())).toEqual(['n0 forward fine']);
  });

  it('that is known-bad only by its recipe leaves nothing in the queue of its pool', () => {
    const s = inPool(1, 'n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(s.view('pools', 'edge').waiting).toBe(1);
    s.given(
      factOf('config.judged', {
        hash: 'x',
        recipe: 'r-c1-new',
        lease: 'x-l1',
        change: 'c0',
        node: 'x',
        knownBad: true,
      }),
    );
    expect(s.view('pools', 'edge').waiting).toBe(0);
  });
});

describe('a report', () => {
  it('that says applied, but names another config, is recorded with both', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const [settled] = s.leaseEnds('n0', 'applied', { hash: 'strange' });
    expect(settled).toMatchObject({ because: 'failed', report: { verdict: 'applied', hash: 'strange' } });
    expect(s.status('n0')).toMatchObject({ verdict: 'applied', hash: 'strange' });
  });

  it('of a lower incarnation never counts, even with the same nonce', () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'b', { incarnation: 2 });
    expect(s.nodeReports('n0', 'a', { incarnation: 1 })).toEqual([]);
  });
});

describe('a rollback', () => {
  it('is not recorded as a recipe', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    expect(s.leaseEnds('n1', 'failed').filter(({ type }) => type === 'node.lease.granted')).toMatchObject([
      { kind: 'rollback', hash: 'old', recipe: '' },
    ]);
  });

  it('of nodes that have the config is not stopped by a config that became known-bad meanwhile', () => {
    const s = inPool(2, 'n0', 'n1', 'n2');
    s.given(accepted('c1'), renderedChange('c1', leading(['n0', 'n1', 'n2'], 'old', 'bad')), validated('c1')).when();
    s.applies('n0', 'n1');
    s.given(factOf('config.judged', { hash: 'bad', lease: 'x-l1', change: 'c0', node: 'x', knownBad: true }));
    expect(grants(s.aborts('c1'))).toEqual(['n0 rollback old']); // n2 has a lease, and holds the other unit
    expect(grants(s.applies('n0'))).toEqual(['n1 rollback old']);
  });
});

describe('a node that has left', () => {
  it('is not deferred, and no rollout waits for it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(left('n1'));
    expect(s.status('n1')).toMatchObject({ deferred: '', change: '', desired: '' });
    expect(s.view('rollouts', 'c1')).toMatchObject({ pending: 1, deferred: 0 });
  });
});
