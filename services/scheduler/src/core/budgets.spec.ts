import { refusedDrift } from '#libs/contracts';
import {
  accepted,
  changed,
  committed,
  ended,
  factOf,
  heard,
  joined,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { settledAs, grants, MINUTE, Scheduler, types } from './scheduler.fixture.js';
import { retryMs } from './retries.js';

const pools = (...wanted: readonly ReturnType<typeof pool>[]): Scheduler => {
  const s = new Scheduler();
  s.given(accepted('c9', { apply: wanted }), renderedChange('c9', {}), validated('c9')).when();
  s.given(committed('c9')).when();
  return s;
};
const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

describe('the budget of a pool', () => {
  it.each([
    [3, 5, 3],
    ['10%', 5, 1], // never less than one
    ['10%', 19, 1], // floor
    ['10%', 20, 2],
    ['100%', 4, 4],
  ])('%s of %i nodes is %i', (budget, count, expected) => {
    const s = pools(pool('edge', budget)).fleet(names('n', count), { role: 'edge' });
    expect(s.rolls('c1', names('n', count)).filter(({ type }) => type === 'node.lease.granted')).toHaveLength(expected);
    expect(s.view('pools', 'edge')).toMatchObject({
      budget: expected,
      members: count,
      maxUnavailable: String(budget),
      waiting: count - expected,
    });
  });

  it('applies to the pool default, for nodes that no Pool selects', () => {
    const s = pools(pool('edge', 5)).fleet(['n0', 'n1']);
    expect(grants(s.rolls('c1', ['n0', 'n1']))).toEqual(['n0 forward c1-new']);
    expect(s.status('n0').pool).toBe('default');
  });

  it('is used in each pool separately', () => {
    const s = pools(pool('a', 1), pool('b', 1)).fleet(['a0', 'a1'], { role: 'a' }).fleet(['b0', 'b1'], { role: 'b' });
    expect(grants(s.rolls('c1', ['a0', 'a1', 'b0', 'b1']))).toEqual(['a0 forward c1-new', 'b0 forward c1-new']);
  });

  it('counts silent nodes, although nothing changes them', () => {
    const s = pools(pool('edge', 2)).fleet(['n0', 'n1', 'n2'], { role: 'edge' }).given(silent('n2'));
    expect(grants(s.rolls('c1', ['n0', 'n1']))).toEqual(['n0 forward c1-new']);
  });

  it('keeps the unit of a silent node, and the rollout stalls with its name until it is heard', () => {
    const s = new Scheduler().fleet(['n0', 'n1']).given(silent('n1'));
    const facts = s.rolls('c1', ['n0']);
    expect(facts.at(-1)).toMatchObject({
      type: 'rollout.stalled',
      nodes: ['n1'],
      reason: 'waits for n1 (silent): see sluice why c1',
    });
    expect(s.view('rollouts', 'c1').stalledBy).toEqual(['n1']);
    expect(s.when()).toEqual([]); // recorded once
    expect(grants(s.given(heard('n1')).when())).toEqual(['n0 forward c1-new']);
    expect(s.view('rollouts', 'c1').stalledBy).toEqual([]); // and no longer true
  });

  it('needs no further unit for a node that is already unavailable', () => {
    const s = pools(pool('edge', 1)).fleet(['n0', 'n1'], { role: 'edge' }).given(silent('n1'));
    s.nodeReports('n0', 'old', { verdict: 'failed', restored: false });
    expect(s.unavailable('edge')).toEqual(['n0', 'n1']);
    expect(grants(s.rolls('c1', ['n0']))).toEqual(['n0 forward c1-new']);
  });

  it.each([
    ['starts', (s: Scheduler) => s.given(factOf('rollout.started', { change: 'c1' })), 1],
    [
      'starts and is superseded',
      (s: Scheduler) =>
        s
          .given(factOf('rollout.started', { change: 'c1' }))
          .given(factOf('rollout.superseded', { change: 'c1', by: 'c2' })),
      3,
    ],
    [
      'starts and ends',
      (s: Scheduler) => s.given(factOf('rollout.started', { change: 'c1' })).given(ended('c1', 'superseded')),
      3,
    ],
  ])('has the current value in the view when a change that lowers it %s', (_, act, budget) => {
    const s = pools(pool('edge', 3));
    s.given(accepted('c1', { apply: [pool('edge', 1)] }), renderedChange('c1', {}), validated('c1'));
    s.core.takeTouched(s.state);
    act(s);
    expect([...s.core.takeTouched(s.state)]).toContain('pools/edge');
    expect(s.view('pools', 'edge').budget).toBe(budget);
  });

  it('is lowered from the start of a change, and raised again if that is not committed', () => {
    const s = pools(pool('edge', 3)).fleet(names('n', 4), { role: 'edge' });
    s.rolls('c1', ['n0'], { apply: [pool('edge', 1)] });
    expect(s.view('pools', 'edge').budget).toBe(1);
    expect(grants(s.rolls('c2', ['n1']))).toEqual([]);
    expect(grants(s.leaseEnds('n0', 'failed'))).toEqual(['n1 forward c2-new']);
    expect(s.rollout('c1').phase).toBe('reverted');
    s.given(ended('c1', 'reverted')).when();
    expect(s.view('pools', 'edge').budget).toBe(3);
  });

  it('is raised only when the change is committed', () => {
    const s = pools(pool('edge', 1)).fleet(['n0', 'n1'], { role: 'edge' });
    expect(grants(s.rolls('c1', ['n0', 'n1'], { apply: [pool('edge', 2)] }))).toEqual(['n0 forward c1-new']);
    s.applies('n0');
    s.applies('n1');
    s.given(committed('c1')).when();
    expect(s.view('pools', 'edge').budget).toBe(2);
  });

  it('is the smallest if several pools select a node, then that of the first name', () => {
    const s = pools(pool('big', 5, 'edge'), pool('tiny', 2, 'edge'), pool('small', 2, 'edge')).fleet(['n0'], {
      role: 'edge',
    });
    expect(s.status('n0').pool).toBe('small');
  });

  it('counts no node in a pool that it was never in when a commit of policies changes the pools', () => {
    const s = pools(pool('three', 3, 'edge')).fleet(names('n', 6), { role: 'edge' });
    s.given(
      silent('n0'),
      accepted('c8', { apply: [pool('all', '100%', 'edge')] }),
      renderedChange('c8', {}),
      validated('c8'),
    ).when();
    s.given(committed('c8')).when(); // counted over one node, it would have the smaller budget
    expect([s.unavailable('three'), s.unavailable('all')]).toEqual([['n0'], []]);
  });
});

describe('a node that moves to another pool', () => {
  const moving = () =>
    pools(pool('a', 1), pool('b', 1)).fleet(['n0', 'n1'], { role: 'a' }).fleet(['m0'], { role: 'b' });

  it('counts in both pools until its lease is released', () => {
    const s = moving();
    s.rolls('c1', ['n0', 'n1', 'm0'].slice(0, 2));
    s.given(changed('n0', { role: 'b' }));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([['n0'], ['n0']]);
    expect(grants(s.rolls('c2', ['m0']))).toEqual([]);
    expect(grants(s.applies('n0'))).toEqual(['n1 forward c1-new', 'm0 forward c2-new']);
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([['n1'], ['m0']]);
  });

  it('counts in both pools while it is silent', () => {
    const s = moving();
    s.given(silent('n0'), changed('n0', { role: 'b' }));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([['n0'], ['n0']]);
    s.given(heard('n0'));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([[], []]);
  });

  it('forgets its old pool when it leaves', () => {
    const s = moving();
    s.given(silent('n0'), changed('n0', { role: 'b' }), factOf('node.left', { node: 'n0', because: 'removed' }));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([[], []]);
    s.given(joined('n0', { role: 'b' }), silent('n0'));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([[], ['n0']]);
  });

  it('counts only in its new pool if it is idle', () => {
    const s = moving();
    s.given(changed('n0', { role: 'b' }));
    expect([s.view('pools', 'a').members, s.view('pools', 'b').members]).toEqual([1, 2]);
  });
});

describe('a change that brings a pool', () => {
  const brings = (s: Scheduler) => s.rolls('c1', ['n0', 'n1', 'n2'], { apply: [pool('edge', 2, 'edge', SLOW)] });
  const SLOW = { applyTimeout: '5m', drift: 'repair' };

  it('rolls out by it from its start', () => {
    const s = new Scheduler().fleet(names('n', 3), { role: 'edge' });
    expect(brings(s).filter(({ type }) => type === 'node.lease.granted')).toMatchObject([
      { node: 'n0', pool: 'edge', applyMs: 5 * MINUTE },
      { node: 'n1', pool: 'edge', applyMs: 5 * MINUTE },
    ]);
    expect(s.view('pools', 'edge')).toMatchObject({ budget: 2, members: 3, drift: 'repair', gone: false });
    expect([s.status('n2').pool, s.view('pools', 'default').members]).toEqual(['edge', 0]);
  });

  it('takes it back if it does not commit', () => {
    const s = new Scheduler().fleet(names('n', 3), { role: 'edge' });
    brings(s);
    s.leaseEnds('n0', 'failed');
    s.leaseEnds('n1', 'failed');
    expect(s.rollout('c1').phase).toBe('reverted');
    s.given(ended('c1', 'reverted')).when();
    expect(s.status('n2').pool).toBe('default');
    expect([s.view('pools', 'default').members, s.view('pools', 'edge').gone]).toEqual([3, true]);
  });

  it('takes it back if another one corrects it, which may bring it again', () => {
    const s = new Scheduler().fleet(names('n', 3), { role: 'edge' });
    brings(s);
    s.rolls('c2', ['n0', 'n1', 'n2'], { replaces: ['c1'] });
    expect(s.status('n2').pool).toBe('default');
    s.rolls('c3', ['n0', 'n1', 'n2'], { apply: [pool('edge', 3)], replaces: ['c2'] });
    expect([s.status('n2').pool, s.view('pools', 'edge').budget]).toEqual(['edge', 3]);
  });

  it('keeps it when a copy starts from a snapshot', () => {
    const s = new Scheduler().fleet(names('n', 3), { role: 'edge' });
    brings(s);
    s.restart();
    expect(grants(s.applies('n0'))).toEqual(['n2 forward c1-new']);
    expect(s.view('pools', 'edge').budget).toBe(2);
  });
});

describe('a change of a pool', () => {
  const changes = (more: object, before: object = {}) => {
    const s = pools(pool('edge', 2, 'edge', before)).fleet(names('n', 4), { role: 'edge' });
    return { s, facts: s.rolls('c1', names('n', 4), { apply: [pool('edge', 2, 'edge', more)] }) };
  };

  it('keeps its other settings until it is committed', () => {
    const { s, facts } = changes({ applyTimeout: '5m', drift: 'overwrite' });
    expect(facts.filter(({ type }) => type === 'node.lease.granted')).toMatchObject([
      { node: 'n0', applyMs: 2 * MINUTE },
      { node: 'n1', applyMs: 2 * MINUTE },
    ]);
    expect(s.view('pools', 'edge')).toMatchObject({ applyMs: 2 * MINUTE, drift: 'report' });
    s.given(committed('c1')).when();
    expect(s.view('pools', 'edge')).toMatchObject({ applyMs: 5 * MINUTE, drift: 'overwrite' });
  });

  it('moves the nodes that it selects or no longer selects at once', () => {
    const { s } = changes({ nodeSelector: { matchLabels: { role: 'core' } } });
    expect(s.atWork()).toEqual(['n0']);
    expect([s.status('n0').pool, s.view('pools', 'edge').members]).toEqual(['default', 0]);
  });
});

describe('leases outside rollouts', () => {
  const wants = (s: Scheduler, node: string, hash: string) =>
    s.given(renderedNode(node, hash, { cause: 'relabel' }), reviewedNode(node, hash));

  it('are granted to a joined node, and take a unit like all others', () => {
    const s = new Scheduler().fleet(['n0']);
    s.given(joined('n1'));
    s.nodeReports('n1', 'empty');
    expect(grants(wants(s, 'n1', 'old').when())).toEqual(['n1 join old']);
    expect(s.unavailable('default')).toEqual(['n1']);
  });

  it('are not granted to a node whose config was not reviewed or is incompatible', () => {
    const s = new Scheduler().given(joined('n0'), renderedNode('n0', 'x'));
    expect(grants(s.nodeReports('n0', 'empty'))).toEqual([]);
    expect(s.why('n0').because).toBe('in-review');
    s.given(
      reviewedNode('n0', 'x', [
        { fragment: 'File/a', field: '', code: 'conflict', message: 'two at one path', nodes: [] },
      ]),
    );
    expect(grants(s.when())).toEqual([]);
    expect(s.why('n0')).toMatchObject({
      because: 'incompatible',
      text: 'the committed config is incompatible with it: two at one path',
    });
    expect(s.status('n0')).toMatchObject({ incompatible: true, incompatibleReasons: [{ code: 'conflict' }] });
  });

  it('are granted to a node that was incompatible once a change fixes that', () => {
    const s = new Scheduler().given(
      joined('n0'),
      renderedNode('n0', 'x'),
      reviewedNode('n0', 'x', [{ fragment: '', field: '', code: 'c', message: 'm', nodes: [] }]),
    );
    s.nodeReports('n0', 'old');
    s.rolls('c1', ['n0']);
    s.applies('n0');
    s.given(committed('c1')).when();
    expect(s.status('n0')).toMatchObject({ incompatible: false, desired: 'c1-new' });
    expect(s.why('n0').because).toBe('up-to-date');
  });

  it('are corrective, not joins, for a node that already had the committed config', () => {
    const s = new Scheduler().given(joined('n0'));
    s.nodeReports('n0', 'old');
    s.given(renderedNode('n0', 'old'), reviewedNode('n0', 'old')).when();
    expect(grants(s.nodeReports('n0', 'strange'))).toEqual(['n0 corrective old']);
  });

  it('correct a node with another config in force', () => {
    const s = new Scheduler().fleet(['n0']);
    expect(grants(s.nodeReports('n0', 'strange'))).toEqual(['n0 corrective old']);
  });

  it('are granted in this order: corrective, rollback, forward and joins in turn, repair', () => {
    const s = pools(pool('edge', 1, 'edge', { drift: 'repair' })).fleet(names('n', 7), { role: 'edge' });
    s.rolls('c1', ['n0', 'n1']); // n0 holds the only unit all the time
    s.when(s.message('n5', 'old', { kind: 'drifted', differences: ['/etc/motd'] }));
    wants(s, 'n2', 'joins').when();
    s.rolls('c2', ['n3']);
    s.nodeReports('n4', 'strange');
    s.applies('n0');
    s.aborts('c1');
    const order: string[] = [];
    for (let i = 0; i < 6; i++) {
      const [node] = s.atWork();
      if (node === undefined) break;
      order.push(`${node} ${s.lease(node).kind}`);
      s.applies(node);
    }
    expect(order).toEqual(['n4 corrective', 'n0 rollback', 'n2 join', 'n3 forward', 'n5 repair']);
  });

  it('repair drift only if the pool says so', () => {
    const drift = (s: Scheduler) => s.when(s.message('n0', 'old', { kind: 'drifted', differences: ['/etc/motd'] }));
    const repairs = pools(pool('edge', 1, 'edge', { drift: 'repair' })).fleet(['n0'], { role: 'edge' });
    expect(grants(drift(repairs))).toEqual(['n0 repair old']);
    repairs.applies('n0');
    expect(repairs.status('n0').drifted).toEqual([]);
    const reports = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    expect(grants(drift(reports))).toEqual([]);
    expect(reports.status('n0').drifted).toEqual(['/etc/motd']);
  });

  it('do not try to repair drift that the node refuses to correct, and say so', () => {
    const refused = refusedDrift('/a: is a directory', 'a directory that is not empty is in the way');
    const s = pools(pool('edge', 1, 'edge', { drift: 'repair' })).fleet(['n0'], { role: 'edge' });
    const finds = (...differences: readonly string[]) =>
      grants(s.when(s.message('n0', 'old', { kind: 'drifted', differences })));
    expect(finds(refused)).toEqual([]);
    expect(s.why('n0')).toMatchObject({
      because: 'drifted',
      text: `it is up to date, except for drift (${refused}): the node cannot correct it: undo it on the node`,
    });
    expect(finds(refused, '/b: missing')).toEqual(['n0 repair old']);
    expect(s.lease('n0').drift).toEqual({ differences: ['/b: missing'], overwrite: true });
    // It does not get drift: overwrite as the way out, because that would not help.
    const kept = pools(pool('edge', 1, 'edge')).fleet(['n0'], { role: 'edge' });
    kept.when(kept.message('n0', 'old', { kind: 'drifted', differences: [refused] }));
    kept.rolls('c1', ['n0']);
    kept.given(committed('c1')).when();
    expect(kept.why('n0')).toMatchObject({
      text: `the committed config waits: it has drift (${refused}): undo it on the node`,
    });
  });

  describe('if the pool only reports drift', () => {
    const EDITED = '/etc/motd: content differs';
    const inPool = (drift: string) => pools(pool('edge', 1, 'edge', { drift })).fleet(['n0'], { role: 'edge' });
    const finds = (s: Scheduler, differences: readonly string[], hash = 'old') =>
      s.when(s.message('n0', hash, { kind: 'drifted', differences }));

    it('do not overwrite it: the change and the committed config are deferred until it is undone', () => {
      const s = inPool('report');
      finds(s, [EDITED]);
      const facts = s.rolls('c1', ['n0']);
      expect([grants(facts), types(facts)]).toEqual([[], ['rollout.started', 'node.deferred', 'rollout.complete']]);
      expect(grants(s.given(committed('c1')).when())).toEqual([]);
      expect(s.why('n0')).toMatchObject({
        because: 'blocked',
        text: expect.stringContaining('undo it on the node, or set drift: overwrite in Pool/edge') as string,
      });
      expect(grants(finds(s, []))).toEqual(['n0 corrective c1-new']);
      expect(s.lease('n0').drift).toEqual({ differences: [], overwrite: false });
    });

    it('defer a node that detects drift only when it is about to change', () => {
      const s = inPool('report');
      expect(grants(s.rolls('c1', ['n0']))).toEqual(['n0 forward c1-new']);
      const facts = s.leaseEnds('n0', 'refused', { kind: 'drifted', differences: [EDITED] });
      expect([settledAs(facts), grants(facts)]).toEqual([['n0 stale'], []]);
      expect(types(facts)).toContain('rollout.complete');
    });

    it.each(['overwrite', 'repair'])('change the node if the pool says %s', (drift) => {
      const s = inPool(drift);
      s.reviewed('c1', ['n0']);
      expect(grants(finds(s, [EDITED]))).toEqual(['n0 forward c1-new']);
      expect(s.lease('n0').drift).toEqual({ differences: [EDITED], overwrite: true });
    });

    it('change a node once a Pool with `overwrite` is committed', () => {
      const s = inPool('report');
      finds(s, [EDITED]);
      s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x')).when();
      s.given(accepted('c8', { apply: [pool('edge', 1, 'edge', { drift: 'overwrite' })] }));
      s.given(renderedChange('c8', {}), validated('c8')).when();
      expect(grants(s.given(committed('c8')).when())).toEqual(['n0 join x']);
    });

    it('leave alone a node that lags behind when a later change is aborted', () => {
      const s = inPool('report').fleet(['n1'], { role: 'edge' });
      finds(s, [EDITED]);
      s.rolls('c1', ['n0', 'n1']);
      s.applies('n1');
      s.given(committed('c1'), renderedNode('n0', 'c1-new'), reviewedNode('n0', 'c1-new')).when();
      s.rolls('c2', ['n0', 'n1'], { from: 'c1-new' });
      const facts = [...s.aborts('c2'), ...s.leaseEnds('n1', 'failed')];
      expect(grants(facts)).toEqual([]);
      expect(types(facts)).toContain('rollout.reverted');
      expect(grants(finds(s, []))).toEqual(['n0 join c1-new']);
    });

    it('roll a node back, whatever has drifted since', () => {
      const s = inPool('report').fleet(['n1'], { role: 'edge' });
      s.rolls('c1', ['n0', 'n1']);
      s.applies('n0');
      finds(s, [EDITED], 'c1-new');
      expect(grants(s.leaseEnds('n1', 'invalid'))).toEqual(['n0 rollback old']);
      expect(s.lease('n0').drift).toEqual({ differences: [EDITED], overwrite: true });
    });

    it.each([
      'app.service: is failed instead of started',
      'Exec/x: check: it ended with 1',
      '/etc/motd: cannot be read: EIO',
    ])('change a node if no manual change is overwritten: %s', (difference) => {
      const s = inPool('report');
      finds(s, [difference]);
      expect(grants(s.rolls('c1', ['n0']))).toEqual(['n0 forward c1-new']);
    });

    it('the view shows since when a node differs, until it has another config', () => {
      const s = inPool('report');
      finds(s, [EDITED]);
      const { driftedSince } = s.status('n0');
      expect(driftedSince).toMatch(/^2026-/);
      finds(s, [EDITED, '/b: missing']);
      expect(s.status('n0')).toMatchObject({ drifted: [EDITED, '/b: missing'], driftedSince });
      s.nodeReports('n0', 'empty');
      expect(s.status('n0')).toMatchObject({ drifted: [], driftedSince: '' });
    });
  });

  it('are planned again in the same turn if a node gives a repair back that was planned for other drift', () => {
    const s = pools(pool('edge', 1, 'edge', { drift: 'repair' })).fleet(['n0'], { role: 'edge' });
    s.when(s.message('n0', 'old', { kind: 'drifted', differences: ['/a: missing'] }));
    const first = s.lease('n0');
    expect(first.drift).toEqual({ differences: ['/a: missing'], overwrite: true });
    const both = ['/b: missing', '/a: missing'];
    const facts = s.leaseEnds('n0', 'refused', { kind: 'drifted', differences: both });
    expect([settledAs(facts), grants(facts)]).toEqual([['n0 stale'], ['n0 repair old']]);
    expect(s.lease('n0').drift).toEqual({ differences: both, overwrite: true });
  });

  it('are not repeated as a repair if the node reports that nothing differs', () => {
    const s = pools(pool('edge', 1, 'edge', { drift: 'repair' })).fleet(['n0'], { role: 'edge' });
    s.when(s.message('n0', 'old', { kind: 'drifted', differences: ['/a: missing'] }));
    const facts = s.leaseEnds('n0', 'refused', { kind: 'drifted', differences: [] });
    expect([settledAs(facts), grants(facts), s.status('n0').drifted]).toEqual([['n0 stale'], [], []]);
  });
});

describe('fresh nodes', () => {
  const fresh = (s: Scheduler, ...list: readonly string[]) => {
    for (const node of list) {
      s.given(joined(node, { role: 'edge' }, { fresh: true }));
      s.nodeReports(node, 'empty', { fresh: true });
      s.given(renderedNode(node, 'old'), reviewedNode(node, 'old'));
    }
    return s.when();
  };

  it('get their first lease without a unit, ten at once in a pool', () => {
    const s = pools(pool('edge', 1)).fleet(['n0', 'n1'], { role: 'edge' });
    s.rolls('c1', ['n0', 'n1']);
    fresh(s, ...names('f', 12));
    expect(s.atWork()).toEqual([...names('f', 10), 'n0']);
    expect(s.unavailable('edge')).toEqual(['n0']);
    expect(grants(s.applies('f0'))).toEqual(['f10 join old']);
  });

  it('take no unit from nodes that need one, even if they came first', () => {
    const s = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    s.given(
      joined('f0', { role: 'edge' }, { fresh: true }),
      renderedNode('f0', 'old'),
      reviewedNode('f0', 'old'),
    ).reviewed('c1', ['n0']);
    expect(grants(s.nodeReports('f0', 'empty', { fresh: true }))).toEqual(['f0 join old', 'n0 forward c1-new']);
  });

  it('need a unit from their second lease on', () => {
    const s = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    fresh(s, 'f0');
    s.applies('f0');
    s.rolls('c1', ['n0']);
    s.given(renderedNode('f0', 'more', { cause: 'relabel' }), reviewedNode('f0', 'more'));
    expect(grants(s.when())).toEqual([]);
  });

  it('are not recognized by an empty disk', () => {
    const s = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    s.rolls('c1', ['n0']);
    s.given(joined('e0', { role: 'edge' }), renderedNode('e0', 'old'), reviewedNode('e0', 'old'));
    expect(grants(s.nodeReports('e0', 'empty'))).toEqual([]);
  });
});

describe('a failed lease outside a rollout', () => {
  const circumstances = { incarnation: 1, nonce: 7, bootId: 'b1' } as const;

  it('fails no rollout, is deferred, and is tried again after 1, 2, 4 … minutes, an hour at most', () => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'strange');
    for (const [i, minutes] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      const ms = retryMs('n0', i + 1);
      expect(ms).toBeGreaterThanOrEqual(minutes * MINUTE);
      expect(ms).toBeLessThan(minutes * MINUTE * (i < 2 ? 1.0001 : 1.25));
      expect(types(s.leaseEnds('n0', 'failed'))).toEqual([
        'node.lease.settled',
        'node.deferred',
        'node.lease.released',
      ]);
      expect(s.status('n0').deferred).toBe('corrective lease ended as failed: it is failed');
      expect(s.why('n0')).toMatchObject({ because: 'backing-off', retryInMs: Math.round(ms) });
      expect(grants(s.after(ms - 1))).toEqual([]);
      expect(grants(s.after(1))).toEqual(['n0 corrective old']);
    }
    s.applies('n0');
    expect(s.status('n0').deferred).toBe('');
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'failed');
    expect(s.why('n0').retryInMs).toBe(MINUTE); // from the beginning
  });

  it.each([
    ['its config', (s: Scheduler) => s.given(renderedNode('n0', 'newer'), reviewedNode('n0', 'newer')).when(), 'newer'],
    ['its labels', (s: Scheduler) => s.given(changed('n0', { zone: 'b' })).when(), 'old'],
    ['its boot', (s: Scheduler) => s.nodeReports('n0', 'strange', { ...circumstances, bootId: 'b2' }), 'old'],
    ['its incarnation', (s: Scheduler) => s.nodeReports('n0', 'strange', { incarnation: 2, nonce: 3 }), 'old'],
  ])('that is invalid is tried again only after something changed: %s', (_, change, hash) => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'invalid');
    expect(s.after(24 * 60 * MINUTE)).toEqual([]);
    expect(s.why('n0').because).toBe('refused');
    expect(s.nodeReports('n0', 'strange', circumstances)).toHaveLength(1); // reports the same again
    expect(grants(change(s))).toEqual([expect.stringMatching(new RegExp(`^n0 (corrective|join) ${hash}$`))]);
  });

  it('that is invalid is the reason that is shown, even if the node was deferred for another reason since', () => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'invalid');
    s.given(factOf('node.deferred', { node: 'n0', change: 'c7', reason: 'silent' }));
    expect(s.why('n0')).toMatchObject({ because: 'refused', text: expect.stringContaining('(it is invalid)') });
  });

  it('that is invalid does not stop the node from getting a newer desired config', () => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'strange');
    s.given(renderedNode('n0', 'newer'), reviewedNode('n0', 'newer')); // while the lease to `old` is open
    expect(grants(s.leaseEnds('n0', 'invalid'))).toEqual([expect.stringMatching(/^n0 (corrective|join) newer$/)]);
  });

  it('whose next try is due waits for the same things as every node', () => {
    const s = new Scheduler().fleet(['n0', 'n1']);
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'failed');
    s.given(silent('n1')).after(MINUTE);
    expect(s.why('n0')).toMatchObject({ because: 'budget', holders: ['n1'] });
  });
});
