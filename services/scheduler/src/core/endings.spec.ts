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

describe('a drain that comes to nothing', () => {
  it.each([
    ['that failed', (s: Scheduler) => s.given(stopped('failed')).when(), 'failed'],
    ['that was deferred', (s: Scheduler) => s.given(stopped('deferred')).when(), 'cancelled'],
    ['that nobody ended', (s: Scheduler) => s.after(10 * MINUTE), 'failed'],
    ['whose rollout rolls back', (s: Scheduler) => s.aborts('c1'), 'cancelled'],
  ])('%s leaves the node as it was, and says so', (_, happens, because) => {
    const said = happens(draining('n0'));
    expect(said.filter(({ type }) => type === 'node.lease.settled')).toMatchObject([{ because, restored: true }]);
  });

  it('is cancelled when its node leaves the rollout by a relabel, though that goes on', () => {
    const s = draining('n0', 'n1');
    const said = s
      .given(factOf('node.rendered', { node: 'n0', hash: 'other', recipe: 'r', outdatedIn: ['c1'] }))
      .when();
    expect(settledAs(said)).toEqual(['n0 cancelled']);
    expect(s.rollout('c1').phase).toBe('rolling');
  });

  it('counts as under way until then: nothing is complete or stalled meanwhile', () => {
    const s = draining('n0', 'n1');
    expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 2, done: 0, active: 1, untouched: 0 } });
    s.given(silent('n0'));
    expect(s.when()).toEqual([]);
  });
});

describe('a lease that ends by its time', () => {
  it('is on its way to released in the same batch', () => {
    const s = draining('n0');
    s.nowMs += 10 * MINUTE;
    expect(types(s.decide().facts)).toEqual(expect.arrayContaining(['node.lease.settled', 'node.lease.uncordoning']));
  });
});

describe('a lease that has ended and is not released', () => {
  it('keeps its node from being given up as silent or taken until it is', () => {
    const s = draining('n0');
    s.given(drained('n0')).when();
    expect(types(s.answers_('n0', 'refused'))).toContain('node.lease.uncordoning');
    expect(s.given(silent('n0')).when()).toEqual([]);
    expect(deferred(s.given(uncordoned('n0')).when())).toEqual(['n0: silent']);
  });

  it('is released by an answer while it is uncordoned, though its node was skipped and its time is not over', () => {
    const s = draining('n0');
    s.given(drained('n0')).when();
    expect(types(s.skips('n0'))).toContain('node.lease.uncordoning');
    expect(s.given(uncordoned('n0')).when()).toEqual([]);
    expect(types(s.reports_('n0', 'old', { lease: 'n0-l1', verdict: 'refused' }))).toContain('node.lease.released');
  });

  it('is not answered by what was said before it ended: without an answer since, it is held', () => {
    const s = draining('n0');
    s.reports_('n0', 'old', { lease: 'n0-l1' });
    s.given(drained('n0')).when();
    expect(types(s.after(PAST_DEADLINE))).toContain('node.unknown');
    expect([s.lease('n0').phase, s.unavailable('default')]).toEqual(['settled', ['n0']]);
  });

  it('asks for no time while its view is not known to be shown', () => {
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
    s.reports_('n0', 'strange');
    return s;
  };

  it('for its own lease, and lives, is so until that is released', () => {
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

  it('in a rollout stays so after its lease, until that has ended', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.skips('n0');
    s.after(2 * MINUTE);
    expect(s.lease('n0').phase).toBe('released');
    expect(s.status('n0').skipped).toBe('me');
  });
});

describe('a lease outside a rollout', () => {
  it('makes none that could be listed', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'strange');
    expect(s.lease('n0')).toMatchObject({ kind: 'corrective', change: '' });
    expect([...s.state.rollouts.keys()]).toEqual([]);
    s.answers_('n0', 'failed');
    expect([[...s.state.rollouts.keys()], [...s.state.targets.keys()]]).toEqual([[], []]);
  });

  it('that ends invalid is deferred with what the node says', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'strange');
    expect(deferred(s.answers_('n0', 'invalid'))).toEqual(['n0: corrective lease ended as invalid: it is invalid']);
  });

  it('without an answer is tried again a minute after its end, and not as soon as it is answered', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'strange');
    expect(settledAs(s.after(2 * MINUTE))).toEqual(['n0 unknown']);
    expect(types(s.reports_('n0', 'strange', { lease: 'n0-l1', verdict: 'refused' }))).toContain('node.lease.released');
    expect(s.after(MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n0 corrective old']);
  });

  it('that was applied ends the deferral, though by then the node should have something newer', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'strange');
    s.answers_('n0', 'failed');
    expect(grants(s.after(MINUTE))).toEqual(['n0 corrective old']);
    s.given(renderedNode('n0', 'newer'), reviewedNode('n0', 'newer'));
    expect(s.status('n0').deferred).not.toBe('');
    expect(grants(s.applies('n0'))).toEqual(['n0 corrective newer']);
    expect(s.status('n0').deferred).toBe('');
  });

  it('to a config that cannot be found is deferred, and looked for again after 1, 2 … minutes', () => {
    const s = fleetOf('n0');
    s.lost.add('old');
    const said = s.reports_('n0', 'strange').filter(({ type }) => type === 'node.deferred');
    expect(said).toEqual([
      expect.objectContaining({ node: 'n0', lease: '', change: '', pool: 'default', reason: 'old is lost' }),
    ]);
    expect(s.after(MINUTE - 1)).toEqual([]);
    expect(deferred(s.after(1))).toEqual(['n0: old is lost']);
    s.lost.clear();
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n0 corrective old']);
  });
});

describe('an invalid', () => {
  it('is one failure of its rollout', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.answers_('n0', 'invalid');
    expect(s.rollout('c1')).toMatchObject({ failed: 1, unknown: 0 });
  });

  it('in a rollout keeps the node from nothing that it is to have outside of one', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.answers_('n0', 'invalid');
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

  it('turns no rollout that rolls back already, whatever its nodes still have', () => {
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
    expect(linesOf(s.answers_('a0', 'invalid'), 'change').filter((line) => line.startsWith('rollout.failed'))).toEqual([
      'rollout.failed c1',
    ]);
  });

  it('without a known recipe holds up the start of nothing that has none either', () => {
    const s = fleetOf('n0', 'x').given(
      accepted('c0'),
      renderedChange('c0', { x: { from: 'old', to: 'bad', recipe: '' } }),
      validated('c0'),
    );
    s.when();
    s.given(accepted('c1'), renderedChange('c1', { n0: { from: 'old', to: 'fine', recipe: '' } }), validated('c1'));
    expect([...s.answers_('x', 'invalid')].map(({ type }) => type)).toContain('rollout.started');
  });

  it('that is known-bad without a known recipe makes nothing known-bad that has none either', () => {
    const s = fleetOf('n0', 'x').given(
      factOf('config.judged', { hash: 'bad', recipe: '', lease: 'x-l1', change: 'c0', node: 'x', knownBad: true }),
    );
    s.given(accepted('c1'), renderedChange('c1', { n0: { from: 'old', to: 'fine', recipe: '' } }), validated('c1'));
    expect(grants(s.when())).toEqual(['n0 forward fine']);
  });

  it('that is known-bad by its recipe alone leaves its pool nothing to wait for', () => {
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

describe('an answer', () => {
  it('that says applied, but of another config, is recorded with both words', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const [settled] = s.answers_('n0', 'applied', { hash: 'strange' });
    expect(settled).toMatchObject({ because: 'failed', report: { verdict: 'applied', hash: 'strange' } });
    expect(s.status('n0')).toMatchObject({ verdict: 'applied', hash: 'strange' });
  });

  it('of a lower incarnation never counts, though its nonce is the same', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'b', { incarnation: 2 });
    expect(s.reports_('n0', 'a', { incarnation: 1 })).toEqual([]);
  });
});

describe('a rollback', () => {
  it('is no news of a recipe', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    expect(s.answers_('n1', 'failed').filter(({ type }) => type === 'node.lease.granted')).toMatchObject([
      { kind: 'rollback', hash: 'old', recipe: '' },
    ]);
  });

  it('of nodes that have it is not kept by what became known-bad meanwhile', () => {
    const s = inPool(2, 'n0', 'n1', 'n2');
    s.given(accepted('c1'), renderedChange('c1', leading(['n0', 'n1', 'n2'], 'old', 'bad')), validated('c1')).when();
    s.applies('n0', 'n1');
    s.given(factOf('config.judged', { hash: 'bad', lease: 'x-l1', change: 'c0', node: 'x', knownBad: true }));
    expect(grants(s.aborts('c1'))).toEqual(['n0 rollback old']); // n2 is at work, and holds the other unit
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
