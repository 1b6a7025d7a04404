import {
  accepted,
  changed,
  committed,
  factOf,
  heard,
  joined,
  left,
  linesOf,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { PAST_DEADLINE, grants, leading, deferred, Scheduler, settledAs, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);

describe('a rollout', () => {
  it('changes node by node as the budget allows, and is complete after the last', () => {
    const s = fleetOf('n0', 'n1');
    expect(grants(s.rolls('c1', ['n0', 'n1']))).toEqual(['n0 forward c1-new']);
    expect(grants(s.applies('n0'))).toEqual(['n1 forward c1-new']);
    expect(types(s.applies('n1'))).toEqual(['node.lease.settled', 'rollout.complete']);
    expect(types(s.given(committed('c1')).when())).toEqual(['rollout.succeeded']);
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'succeeded', applied: 2, pending: 0, deferred: 0 });
    expect(s.status('n0')).toMatchObject({ hash: 'c1-new', desired: 'c1-new', change: '', deferred: '' });
  });

  it('without nodes ends at once, with its reason', () => {
    const s = fleetOf('n0');
    const facts = s.rolls('c1', [], { apply: [pool('edge', 3)] });
    expect(linesOf(facts, 'reason')).toEqual([
      'rollout.started it affects no nodes',
      'rollout.complete it affects no nodes',
    ]);
    expect(types(s.given(committed('c1')).when())).toEqual(['rollout.succeeded']);
  });

  it('grants no lease to a node that already has the target config', () => {
    const s = fleetOf('n0', 'n1');
    s.given(renderedNode('n1', 'c1-new'), reviewedNode('n1', 'c1-new')).nodeReports('n1', 'c1-new');
    expect(grants(s.rolls('c1', ['n1']))).toEqual([]);
    expect(s.rollout('c1').phase).toBe('complete');
  });

  it('starts after the review of its current attempt, and of no other', () => {
    const s = fleetOf('n0');
    s.given(
      accepted('c1'),
      renderedChange('c1', leading(['n0'], 'old', 'a')),
      renderedChange('c1', leading(['n0'], 'old', 'b'), { attempt: 2 }),
      validated('c1', 1),
    );
    expect(s.when()).toEqual([]);
    expect(grants(s.given(validated('c1', 2)).when())).toEqual(['n0 forward b']);
  });

  it('does not start while one of its nodes is the target of another, even if the queue allowed it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    expect(types(s.rolls('c2', ['n0', 'n1']))).toEqual([]);
    s.applies('n0');
    expect(types(s.given(committed('c1')).when())).toContain('rollout.started');
  });

  it('does not start after a review from before it had to wait', () => {
    const s = fleetOf('n0')
      .reviewed('c1', ['n0'])
      .given(factOf('config.waiting', { change: 'c1', waitsFor: ['c0'] }));
    expect(s.when()).toEqual([]);
  });

  it('does not start with targets that are outdated because of a relabel', () => {
    const s = fleetOf('n0', 'n1');
    s.reviewed('c1', ['n0', 'n1']).given(changed('n1', { zone: 'b' }));
    expect(s.when()).toEqual([]);
    s.given(renderedChange('c1', leading(['n0', 'n1'], 'old', 'again'), { attempt: 2 }), validated('c1', 2));
    expect(grants(s.when())).toEqual(['n0 forward again']);
  });

  it.each([
    { what: 'a relabelled node', facts: [changed('n1', { zone: 'b' })] },
    { what: 'a node that left', facts: [left('n1')] },
    { what: 'a node that left and returned', facts: [left('n1'), joined('n1')] },
    { what: 'a wait for another change', facts: [factOf('config.waiting', { change: 'c1', waitsFor: ['c0'] })] },
  ])('does not start after a review that follows $what, but after that of the next rendering', ({ facts }) => {
    const s = fleetOf('n0', 'n1');
    s.given(accepted('c1'), renderedChange('c1', leading(['n0', 'n1'], 'old', 'c1-new')), ...facts, validated('c1', 1));
    expect(s.when()).toEqual([]);
    s.given(renderedChange('c1', leading(['n0'], 'old', 'again'), { attempt: 2 }), validated('c1', 2));
    expect(grants(s.when())).toEqual(['n0 forward again']);
  });

  it('does not start with a target that has left', () => {
    const s = fleetOf('n0', 'n1');
    s.reviewed('c1', ['n0', 'n1']).given(left('n1'));
    expect(s.when()).toEqual([]);
  });

  it('defers nodes that are silent at its start, and completes without them', () => {
    const s = fleetOf('n0', 'n1');
    s.given(silent('n1'), factOf('node.skipped', { node: 'n1', by: 'me' })); // so that it holds no unit of the pool
    expect(deferred(s.rolls('c1', ['n0', 'n1']))).toEqual(['n1: skipped by me']);
    s.applies('n0');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'complete', deferred: 1, failed: 0, unknown: 0 });
  });

  it('shows a node as deferred after its end only until the node has what it lacked', () => {
    // so that it holds no unit of the pool
    const s = fleetOf('n0', 'n1').given(silent('n1'), factOf('node.skipped', { node: 'n1', by: 'me' }));
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.given(committed('c1')).when();
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'succeeded',
      applied: 1,
      deferred: 1,
      worst: [{ node: 'n1', state: 'deferred' }],
    });
    expect(grants(s.given(heard('n1')).when())).toEqual(['n1 corrective c1-new']);
    s.applies('n1');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'succeeded', applied: 2, deferred: 0, worst: [] });
    const again = new Scheduler(s.ledger);
    again.when();
    expect(again.view('rollouts', 'c1')).toEqual(s.view('rollouts', 'c1'));
  });

  it('that is reverting does not count a node as rolled back while its config is unknown', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const facts = s.after(PAST_DEADLINE);
    expect(types(facts)).toEqual(
      expect.arrayContaining(['node.unknown', 'rollout.failed', 'rollout.reverting', 'node.deferred']),
    );
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'reverted',
      unknown: 1,
      deferred: 1,
      pools: { default: { done: 0 } },
      worst: [{ node: 'n0', state: 'unknown' }],
    });
    s.leaseEnds('n0', 'failed');
    expect(s.view('rollouts', 'c1')).toMatchObject({ deferred: 0, pools: { default: { done: 1 } } });
  });

  it('defers a silent node without a failure, grants it nothing before the end, and then a corrective lease', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('edge', 2)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['n0', 'n1'], { role: 'edge' }).given(silent('n1'));
    const facts = s.rolls('c1', ['n0', 'n1']);
    expect(deferred(facts)).toEqual(['n1: silent']);
    expect(grants(facts)).toEqual(['n0 forward c1-new']);
    expect(grants(s.given(heard('n1')).when())).toEqual([]);
    expect(s.why('n1').because).toBe('deferred');
    s.applies('n0');
    expect(grants(s.given(committed('c1')).when())).toEqual(['n1 corrective c1-new']);
    s.applies('n1');
    expect(s.status('n1')).toMatchObject({ deferred: '', hash: 'c1-new' });
  });

  it('defers a node that has never reported its config', () => {
    const s = fleetOf('n0').given(joined('n1'));
    expect(deferred(s.rolls('c1', ['n0', 'n1']))).toEqual(['n1: it has never reported its config']);
  });

  it('defers a node with an incompatible committed config', () => {
    const s = fleetOf('n0', 'n1');
    expect(deferred(s.rolls('c1', ['n0', 'n1'], { incompatible: ['n1'] }))).toEqual([
      'n1: it is incompatible with this change, and with the committed config too',
    ]);
    s.applies('n0');
    s.given(committed('c1')).when();
    expect(s.status('n1')).toMatchObject({ desired: 'old', hash: 'old' });
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'succeeded', applied: 1, deferred: 1 });
  });

  it('defers a node whose config is missing', () => {
    const s = fleetOf('n0');
    s.lost.add('c1-new');
    expect(deferred(s.rolls('c1', ['n0']))).toEqual(['n0: c1-new is lost']);
    expect(s.rollout('c1').phase).toBe('complete');
  });

  it('does not count a node that leaves', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(types(s.given(left('n1')).when())).toEqual([]);
    s.applies('n0');
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'complete',
      applied: 1,
      deferred: 0,
      failed: 0,
      pending: 0,
    });
  });

  it('grants nothing to a target that has left and joined again', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(left('n1'), joined('n1'));
    expect(types(s.applies('n0'))).toContain('rollout.complete');
  });

  it('is not complete while a node that left it because of a relabel still has its lease', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.given(
      changed('n0', { zone: 'b' }),
      factOf('node.rendered', { node: 'n0', hash: 'old', recipe: 'r-old', outdatedIn: ['c1'] }),
    );
    expect(s.when()).toEqual([]);
    expect(s.rollout('c1').phase).toBe('rolling');
    expect(types(s.applies('n0'))).toContain('rollout.complete');
  });

  it('commits the config of a node that has left the rollout only if that was rendered', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.given(left('n1')).when();
    s.given(committed('c1')).when();
    // its desired config is not rendered yet
    expect(grants(s.given(joined('n1', { zone: 'b' })).when())).toEqual([]);
    expect(s.why('n1').because).not.toBe('up-to-date');
  });
});

describe('a rollout in which a node fails', () => {
  it('starts to revert all changed nodes in the batch that settles the lease', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    const facts = s.leaseEnds('n1', 'failed');
    expect(types(facts).slice(0, 4)).toEqual([
      'node.lease.settled',
      'rollout.failed',
      'rollout.reverting',
      'node.lease.released',
    ]);
    expect(grants(facts)).toEqual(['n0 rollback old']);
    expect(types(s.applies('n0'))).toContain('rollout.reverted');
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'reverted',
      failed: 1,
      reason: 'n1 is failed: it is failed',
    });
  });

  it.each([
    [1, 'rolling'],
    [0, 'reverted'],
  ])('with maxFailures %i is then %s', (maxFailures, phase) => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures });
    s.leaseEnds('n0', 'failed');
    expect(s.rollout('c1').phase).toBe(phase);
  });

  it('counts failed and unknown nodes together', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2'], { maxFailures: 1 });
    s.leaseEnds('n0', 'failed');
    s.after(PAST_DEADLINE);
    expect(s.rollout('c1')).toMatchObject({
      failed: 1,
      unknown: 1,
      reason: 'n1 is unknown: no answer within 120 s; at most 1 may fail',
    });
    expect(s.rollout('c1').phase).toBe('reverted'); // n1 has its `from`, as far as is known
  });

  it('defers the rollback of a node that changed and is unknown now', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2'], { maxFailures: 0 });
    s.applies('n0');
    s.leaseEnds('n1', 'failed');
    expect(deferred(s.after(PAST_DEADLINE))).toEqual(['n0: rollback lease ended as unknown: no answer within 120 s']);
    expect(s.rollout('c1').phase).toBe('reverted');
  });

  it('no longer shows a node as deferred after its end if the node has the committed config', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.leaseEnds('n0', 'failed');
    s.leaseEnds('n1', 'failed');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(s.status('n0')).toMatchObject({ deferred: '', hash: 'old', desired: 'old' });
  });

  it('rolls back a node that was deferred and has answered since', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2'], { maxFailures: 1 });
    s.after(PAST_DEADLINE);
    s.applies('n0');
    expect(grants(s.leaseEnds('n1', 'failed'))).toEqual(['n0 rollback old']);
  });

  it('uses the strictest policy that selects a target if the change sets no maxFailures', () => {
    const s = fleetOf('n0');
    const policies = [1, 3].map((maxFailures) => ({
      kind: 'RolloutPolicy',
      name: `p${maxFailures}`,
      labels: {},
      spec: { nodeSelector: {}, maxFailures },
    }));
    s.rolls('c1', ['n0'], { apply: policies });
    expect(s.rollout('c1').maxFailures).toBe(1);
  });

  it('fails after `invalid` regardless of maxFailures, and so does every other rollout with that hash or recipe', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('a', 1), pool('b', 1), pool('c', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9'))
      .fleet(['a0', 'a1'], { role: 'a' })
      .fleet(['b0', 'b1'], { role: 'b' })
      .fleet(['c0', 'c1'], { role: 'c' });
    s.rolls('c1', ['a0', 'a1'], { to: 'same', maxFailures: 9 });
    s.rolls('c2', ['b0', 'b1'], { to: 'same' });
    s.rolls('c3', ['c0', 'c1'], { to: 'other' });
    s.leaseEnds('a0', 'invalid');
    expect([s.rollout('c1').phase, s.rollout('c2').phase, s.rollout('c3').phase]).toEqual([
      'reverting',
      'reverting',
      'rolling',
    ]);
    expect(s.rollout('c2').reason).toBe('a0 in c1 reported its config as invalid: it is invalid');
  });

  it('is reverted only after the invalid report was judged', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const { lease } = s.lease('n0');
    expect(types(s.leaseEnds('n0', 'invalid'))).not.toContain('rollout.reverted');
    expect(
      types(
        s
          .given(
            factOf('config.judged', {
              hash: 'c1-new',
              recipe: 'r-c1-new',
              lease,
              change: 'c1',
              node: 'n0',
              knownBad: true,
            }),
          )
          .when(),
      ),
    ).toEqual(['rollout.reverted']);
  });

  it('defers a node whose rollback fails, makes nothing known-bad, and is reverted', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.leaseEnds('n1', 'failed');
    const facts = s.leaseEnds('n0', 'failed', { hash: 'c1-new' });
    expect(deferred(facts)).toEqual(['n0: rollback lease ended as failed: it is failed']);
    expect(types(facts)).toContain('rollout.reverted');
    expect(s.rollout('c1').failed).toBe(1);
    expect(grants(s.given(factOf('config.ended', { change: 'c1', outcome: 'reverted' })).when())).toEqual([]);
    expect(grants(s.after(60_000))).toEqual(['n0 corrective old']);
  });

  it('corrects a node that reports `applied` after its rollout has started to revert', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 0 });
    expect(settledAs(s.after(PAST_DEADLINE))).toEqual(['n0 unknown']);
    expect(s.rollout('c1').phase).toBe('reverted');
    const facts = s.when(
      s.message('n0', 'c1-new', { kind: 'applied', lease: s.lease('n0').lease, verdict: 'applied' }),
    );
    expect(grants(facts)).toEqual(['n0 corrective old']);
  });
});
