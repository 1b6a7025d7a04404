import {
  accepted,
  changed,
  committed,
  factOf,
  heard,
  left,
  pool,
  renderedChange,
  silent,
  validated,
} from '#libs/testing';
import { schedulerCore } from './scheduler.js';
import { DRAIN, leading, MINUTE, PAST_DEADLINE, Scheduler, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const pools = (...wanted: readonly ReturnType<typeof pool>[]): Scheduler => {
  const s = new Scheduler().given(accepted('c9', { apply: wanted }), renderedChange('c9', {}), validated('c9'));
  s.when();
  s.given(committed('c9')).when();
  return s;
};
const worst = (s: Scheduler, change: string) =>
  s.view('rollouts', change).worst.map(({ node, state, reason }) => `${node} ${state} ${reason}`.trim());
const pageOf = (s: Scheduler, request: Parameters<Scheduler['asks']>[0]): Record<string, unknown> => {
  s.asks(request);
  return (s.answers[0] as { body: Record<string, unknown> }).body;
};
const away = (node: string) => [silent(node), factOf('node.skipped', { node, by: 'me' })] as const;

describe('the view of a rollout while others are open', () => {
  /** c1 in pool b and then a, c2 in pool c; a1 has failed in c1, c2 has a lease in progress. */
  const neighbours = () => {
    const s = pools(pool('b', 1), pool('a', 1), pool('c', 1))
      .fleet(['b0', 'b1', 'b2'], { role: 'b' })
      .fleet(['a0', 'a1'], { role: 'a' })
      .fleet(['c0', 'c1'], { role: 'c' });
    s.rolls('c1', ['b0', 'b1', 'b2', 'a0', 'a1'], { maxFailures: 1 });
    s.rolls('c2', ['c0', 'c1']);
    s.leaseEnds('a0', 'failed');
    return s;
  };

  it('contains only its own nodes and their pools, by name', () => {
    const s = neighbours();
    expect(worst(s, 'c1')).toEqual(['a0 failed it is failed', 'a1 applying forward', 'b0 applying forward']);
    expect(worst(s, 'c2')).toEqual(['c0 applying forward']);
    expect(s.view('rollouts', 'c1').pools).toEqual({
      a: { nodes: 2, done: 0, active: 1, untouched: 0, degraded: 0 },
      b: { nodes: 3, done: 0, active: 1, untouched: 0, degraded: 0 },
    });
    expect(Object.keys(s.view('rollouts', 'c1').pools)).toEqual(['a', 'b']);
    expect(s.view('rollouts', 'c2').pools).toEqual({ c: { nodes: 2, done: 0, active: 1, untouched: 0, degraded: 0 } });
  });

  it('contains no pool that all of its nodes have left', () => {
    const s = neighbours().given(changed('c0', { role: 'a' }), changed('c1', { role: 'b' }));
    expect(Object.keys(s.view('rollouts', 'c2').pools)).toEqual(['a', 'b']);
    s.given(left('c1')).when();
    expect(Object.keys(s.view('rollouts', 'c2').pools)).toEqual(['a']);
  });

  it('does not count a lease of an older rollout, or of none, as its own', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    expect(pageOf(s, { op: 'rollout.get', change: 'c2', cursor: '', limit: 9 })['nodes']).toEqual([
      { node: 'n0', pool: 'default', state: 'pending', reason: '', since: '' },
      { node: 'n1', pool: 'default', state: 'pending', reason: '', since: '' },
    ]);
    expect(worst(s, 'c2')).toEqual([]);
  });
});

test('a pool without members that is deleted is shown as gone, also by a copy that starts from a snapshot', () => {
  const s = pools(pool('b', 1)).given(
    accepted('c10', { delete: [{ kind: 'Pool', name: 'b' }] }),
    renderedChange('c10', {}),
    validated('c10'),
  );
  s.when();
  s.given(committed('c10')).when();
  const { load, dump, viewKeys, view } = schedulerCore;
  const state = load(JSON.parse(JSON.stringify(dump(s.state))), 0);
  expect([...viewKeys(state)]).toContain('pools/b');
  expect(view(state, { bucket: 'pools', key: 'b' })).toMatchObject({ pool: 'b', gone: true });
});

describe('the view of a rollout that is reverting', () => {
  it.each(['failed', 'invalid'] as const)(
    'lists first the node that caused it, as %s, even if it is already rolled back',
    (verdict) => {
      const s = fleetOf('n0', 'n1', 'n2');
      s.rolls('c1', ['n0', 'n1', 'n2']);
      s.applies('n0');
      s.leaseEnds('n1', verdict);
      expect(worst(s, 'c1')).toEqual([`n1 ${verdict} it is ${verdict}`, 'n0 applying rollback']);
      expect(pageOf(s, { op: 'rollout.get', change: 'c1', cursor: 'n0', limit: 9 })['nodes']).toMatchObject([
        { node: 'n1', state: verdict },
        { node: 'n2', state: 'untouched', reason: '' },
      ]);
      expect(s.view('rollouts', 'c1').pools).toEqual({
        default: { nodes: 3, done: 2, active: 1, untouched: 1, degraded: 0 },
      });
      s.applies('n0');
      expect(s.view('rollouts', 'c1').pools).toEqual({
        default: { nodes: 3, done: 3, active: 0, untouched: 1, degraded: 0 },
      });
    },
  );

  it('does not count a node as rolled back whose only lease was never started', () => {
    const s = pools(pool('edge', 2)).fleet(['n0', 'n1', 'n2'], { role: 'edge' });
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.pauses('c1');
    s.leaseEnds('n0', 'refused');
    s.leaseEnds('n1', 'failed');
    expect(s.view('rollouts', 'c1').pools).toEqual({
      edge: { nodes: 3, done: 3, active: 0, untouched: 2, degraded: 0 },
    });
  });

  const rest = { done: 2, active: 0, degraded: 0 };
  const uncordoned = (s: Scheduler, node: string, lease: string) =>
    s.given(factOf('node.uncordoned', { node, lease, pool: 'default' })).when();

  it.each(['failed', 'invalid'] as const)(
    'does not count a node as rolled back whose lease ended as %s before it changed anything',
    (verdict) => {
      const s = fleetOf('n0', 'n1');
      s.rolls('c1', ['n0', 'n1']);
      s.leaseEnds('n0', verdict, { untouched: true });
      expect(worst(s, 'c1')).toEqual([`n0 ${verdict} it is ${verdict}`]);
      expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 2, ...rest, untouched: 2 } });
    },
  );

  it('counts a node as rolled back if only the lease after the one that changed it changed nothing', () => {
    const s = fleetOf('n0', 'n1');
    s.actions = [{ kind: 'restart', unit: 'x.service' }];
    s.rolls('c1', ['n0', 'n1']);
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l2', pool: 'default' })).when();
    s.leaseEnds('n0', 'failed', { untouched: true });
    uncordoned(s, 'n0', 'n0-l2');
    expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 2, ...rest, untouched: 1 } });
  });

  it('counts a node as rolled back whose first lease was escalated and whose second was never started', () => {
    const s = fleetOf('n0', 'n1');
    s.actions = [{ kind: 'restart', unit: 'x.service' }];
    s.rolls('c1', ['n0', 'n1']);
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l2', pool: 'default' })).when();
    s.after(PAST_DEADLINE);
    s.nodeReports('n0', 'old', { lease: 'n0-l2', verdict: 'refused' });
    uncordoned(s, 'n0', 'n0-l2');
    expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 2, ...rest, untouched: 1 } });
  });

  it('counts a node as untouched whose drain failed', () => {
    const s = fleetOf('n0', 'n1');
    s.actions = DRAIN;
    s.rolls('c1', ['n0', 'n1']);
    const stopped = { node: 'n0', lease: 'n0-l1', pool: 'default', outcome: 'failed', reason: 'x' } as const;
    s.given(factOf('node.drain.stopped', stopped)).when();
    uncordoned(s, 'n0', 'n0-l1');
    expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 2, ...rest, untouched: 2 } });
  });

  it('counts a node as degraded, and names it, if its rollback failed, until it is restored', () => {
    const s = pools(pool('edge', 2)).fleet(['n0', 'n1'], { role: 'edge' });
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.leaseEnds('n1', 'failed', { restored: false, reason: 'degraded: rollback failed: path:/x: EPERM' });
    const progress = { nodes: 2, done: 1, active: 1, untouched: 0 };
    expect(worst(s, 'c1')).toEqual(['n1 failed degraded: rollback failed: path:/x: EPERM', 'n0 applying rollback']);
    expect(s.view('rollouts', 'c1').pools).toEqual({ edge: { ...progress, degraded: 1 } });
    s.nodeReports('n1', 'old');
    expect(s.view('rollouts', 'c1').pools).toEqual({ edge: { ...progress, degraded: 0 } });
    s.nodeReports('n1', 'old', { verdict: 'failed', restored: false, reason: 'degraded: rollback failed: EIO' });
    s.applies('n0');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(s.view('rollouts', 'c1').pools).toEqual({ edge: { ...progress, done: 2, active: 0, degraded: 1 } });
  });

  it('names a node whose rollback failed after it had applied the change', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.aborts('c1');
    s.applies('n0');
    s.nodeReports('n0', 'old', { verdict: 'failed', restored: false, reason: 'degraded: rollback failed: EIO' });
    s.leaseEnds('n1', 'refused');
    expect(worst(s, 'c1')).toEqual(['n0 degraded degraded: rollback failed: EIO']);
  });

  it('lists first a node that did not answer, and counts it as untouched once it reports that it started nothing', () => {
    const s = pools(pool('edge', 2)).fleet(['n0', 'n1', 'n2'], { role: 'edge' });
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.applies('n2');
    s.after(PAST_DEADLINE);
    expect(worst(s, 'c1')).toEqual(['n1 unknown no answer within 120 s', 'n0 applying rollback']);
    s.nodeReports('n1', 'old', { lease: 'n1-l1', verdict: 'refused' });
    s.applies('n0');
    s.applies('n2');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(worst(s, 'c1')).toEqual(['n1 untouched']);
    expect(s.view('rollouts', 'c1').pools).toEqual({
      edge: { nodes: 3, done: 3, active: 0, untouched: 1, degraded: 0 },
    });
  });
});

describe('the view of a rollout that has ended', () => {
  /** n1 failed, n2 and n3 were unreachable. c1 has deferred all three. */
  const over = () => {
    const s = fleetOf('n0', 'n1', 'n2', 'n3').given(...away('n2'), ...away('n3'));
    s.rolls('c1', ['n0', 'n1', 'n2', 'n3'], { maxFailures: 1 });
    s.applies('n0');
    s.leaseEnds('n1', 'failed');
    s.given(committed('c1')).when();
    expect(worst(s, 'c1')).toEqual([
      'n1 failed it is failed',
      'n2 deferred skipped by me',
      'n3 deferred skipped by me',
    ]);
    return s;
  };

  it('loses its deferred nodes one by one, and keeps the failed ones', () => {
    const s = over();
    s.applies('n1'); // corrected, which ends its deferral, but it still has failed
    expect(worst(s, 'c1')).toEqual([
      'n1 failed it is failed',
      'n2 deferred skipped by me',
      'n3 deferred skipped by me',
    ]);
    s.given(heard('n2')).when();
    s.showViews = () => undefined;
    s.core.takeTouched(s.state);
    s.applies('n2');
    expect([...s.core.takeTouched(s.state)]).toContain('rollouts/c1');
    expect(worst(s, 'c1')).toEqual(['n1 failed it is failed', 'n3 deferred skipped by me']);
    expect(s.view('rollouts', 'c1')).toMatchObject({
      applied: 3,
      deferred: 1,
      failed: 1,
      pools: { default: { nodes: 4, done: 3 } },
    });
  });

  it('is answered node by node, in pages, also after a start from a snapshot', () => {
    const s = over();
    s.state = s.core.load(JSON.parse(JSON.stringify(s.core.dump(s.state))), s.nowMs) as typeof s.state;
    const rows: string[] = [];
    for (let cursor = ''; ;) {
      const page = pageOf(s, { op: 'rollout.get', change: 'c1', cursor, limit: 3 });
      const nodes = page['nodes'] as { node: string; state: string; pool: string; reason: string }[];
      rows.push(...nodes.map(({ node, state, pool, reason }) => `${node} ${pool} ${state} ${reason}`.trim()));
      if (page['next'] === undefined) break;
      cursor = page['next'] as string;
    }
    expect(rows).toEqual([
      'n0 default applied',
      'n1 default failed it is failed',
      'n2 default deferred skipped by me',
      'n3 default deferred skipped by me',
    ]);
    s.applies('n1');
    s.given(heard('n2')).when();
    s.applies('n2');
    const { nodes } = pageOf(s, { op: 'rollout.get', change: 'c1', cursor: '', limit: 9 });
    expect((nodes as { state: string }[]).map(({ state }) => state)).toEqual([
      'applied',
      'failed',
      'applied',
      'deferred',
    ]);
  });

  it.each([
    ['started nothing', { verdict: 'refused' }],
    ['failed before it changed anything', { verdict: 'failed', untouched: true }],
  ] as const)(
    'counts a node as untouched that did not answer, and reports only after the end that it %s',
    (_, fields) => {
      const s = pools(pool('edge', 1)).fleet(['n0', 'n1', 'n2', 'n3'], { role: 'edge' });
      s.rolls('c1', ['n0', 'n1', 'n2', 'n3']);
      s.applies('n0');
      s.applies('n1');
      s.after(PAST_DEADLINE);
      for (const node of ['n0', 'n1']) s.applies(node);
      expect(s.rollout('c1').phase).toBe('reverted');
      const progress = { nodes: 4, active: 0, degraded: 0 };
      expect(s.view('rollouts', 'c1').pools).toEqual({ edge: { ...progress, done: 3, untouched: 1 } });
      s.nodeReports('n2', 'old', { lease: 'n2-l1', ...fields });
      expect(s.view('rollouts', 'c1').pools).toEqual({ edge: { ...progress, done: 4, untouched: 2 } });
      expect(pageOf(s, { op: 'rollout.get', change: 'c1', cursor: '', limit: 9 })['nodes']).toMatchObject([
        { node: 'n0', state: 'rolled-back' },
        { node: 'n1', state: 'rolled-back' },
        { node: 'n2', state: 'untouched' },
        { node: 'n3', state: 'untouched' },
      ]);
    },
  );

  it('no longer defers a node that another rollout has taken over, although the node lacks its config', () => {
    const s = fleetOf('n0', 'n1').given(...away('n1'));
    s.nodeReports('n1', 'strange', { incarnation: 2 });
    s.rolls('c1', ['n0', 'n1']);
    expect(s.view('rollouts', 'c1').deferred).toBe(1);
    s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    expect([s.view('rollouts', 'c1').deferred, worst(s, 'c1')]).toEqual([0, []]);
    expect(s.view('rollouts', 'c2').deferred).toBe(1);
  });

  it('shows how it ended: complete without a reason, reverted with the reason of the rollback', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    expect(s.applies('n0').at(-1)).toMatchObject({ type: 'rollout.complete', reason: '' });
    s.given(committed('c1')).when();
    s.rolls('c2', ['n1']);
    expect(s.leaseEnds('n1', 'failed').at(-1)).toMatchObject({
      type: 'rollout.reverted',
      reason: 'n1 is failed: it is failed',
    });
  });
});

describe('answers', () => {
  it('list rollouts by age and not by their start, and pools without those that are gone', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c11', ['n0']);
    s.rolls('c2', ['n1'], { apply: [pool('edge', 2)] });
    expect(
      (pageOf(s, { op: 'rollout.list', cursor: '', limit: 9 })['rollouts'] as { change: string }[]).map(
        ({ change }) => change,
      ),
    ).toEqual(['c2', 'c11']);
    const gone = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    gone.rolls('c1', [], { delete: [{ kind: 'Pool', name: 'edge' }] });
    gone.given(committed('c1', 2)).when();
    expect(
      (pageOf(gone, { op: 'pool.list', cursor: '', limit: 9 })['pools'] as { pool: string }[]).map((one) => one.pool),
    ).toEqual(['default']);
    expect(pageOf(gone, { op: 'pool.list', cursor: 'zzz', limit: 9 })['pools']).toEqual([]);
  });

  it('to a pause after an abort say that the rollout is reverting', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.aborts('c1');
    s.pauses('c1');
    expect(s.answers).toEqual([{ ok: false, code: 'conflict', message: 'c1 is already reverting' }]);
  });

  it('to skipping a node without a lease name no lease in its fact', () => {
    const s = fleetOf('n0').given(silent('n0'));
    expect(s.skips('n0')).toMatchObject([{ type: 'node.skipped', node: 'n0', lease: '', change: '' }]);
  });
});

describe('what a rollout leaves behind', () => {
  it('is shown as deferred in the pool of its node, and by no lease', () => {
    const s = pools(pool('edge', 1))
      .fleet(['n0'], { role: 'edge' })
      .given(...away('n0'));
    expect(s.rolls('c1', ['n0'])[1]).toMatchObject({
      type: 'node.deferred',
      node: 'n0',
      pool: 'edge',
      lease: '',
      change: 'c1',
      reason: 'skipped by me',
    });
  });

  it('is empty before it starts: one invalid report of its configs requires another review', () => {
    const s = fleetOf('n0', 'n1', 'x');
    s.rolls('c0', ['x'], { to: 'bad' });
    s.given(
      accepted('c1'),
      renderedChange('c1', { n0: { from: 'old', to: 'fine', recipe: '' }, n1: { from: 'old', to: 'bad', recipe: '' } }),
      validated('c1'),
    );
    s.leaseEnds('x', 'invalid');
    expect(s.state.rollouts.has('c1')).toBe(false);
  });
});

describe('a stall', () => {
  it('lists by name the nodes that hold the units in all pools of the rollout', () => {
    const s = pools(pool('a', 1), pool('b', 1))
      .fleet(['a0', 'z'], { role: 'a' })
      .fleet(['b0', 'm'], { role: 'b' })
      .given(silent('z'), silent('m'));
    expect(s.rolls('c1', ['a0', 'b0']).at(-1)).toMatchObject({ type: 'rollout.stalled', nodes: ['m', 'z'] });
  });

  it('is recorded even if another rollout that is paused has units left', () => {
    const s = pools(pool('a', 1), pool('b', 1))
      .fleet(['a0', 'z'], { role: 'a' })
      .fleet(['b0'], { role: 'b' })
      .given(silent('z'), accepted('c2'));
    s.pauses('c2');
    s.given(renderedChange('c2', leading(['b0'], 'old', 'x')), validated('c2')).when();
    expect(s.view('rollouts', 'c2')).toMatchObject({ paused: true, pending: 1 });
    expect(s.rolls('c1', ['a0']).at(-1)).toMatchObject({ type: 'rollout.stalled', change: 'c1', nodes: ['z'] });
  });

  it('does not list a node whose lease has ended and only must be released', () => {
    const s = fleetOf('n0', 'n1');
    s.actions = DRAIN;
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'default' })).when();
    expect(types(s.leaseEnds('n0', 'failed'))).toEqual([
      'node.lease.settled',
      'node.deferred',
      'node.lease.uncordoning',
    ]);
    expect(s.when()).toEqual([]);
  });
});

describe('a node whose name has dots', () => {
  it('is released like any other after it was skipped', () => {
    const s = fleetOf('n0.example.org');
    s.rolls('c1', ['n0.example.org']);
    s.skips('n0.example.org');
    expect(types(s.after(2 * MINUTE))).toEqual(expect.arrayContaining(['node.lease.released']));
  });
});

describe('the number of unknown nodes in the view of a rollout', () => {
  const unknownIn = (s: Scheduler): readonly number[] => {
    const { unknown, applied, deferred } = s.view('rollouts', 'c1');
    return [unknown, applied, deferred];
  };
  /** n0 has not answered in time, and n1 still has to change. */
  const lost = (maxFailures: number): Scheduler => {
    const s = pools(pool('all', 2)).fleet(['n0', 'n1'], { role: 'all' });
    s.rolls('c1', ['n0', 'n1'], { maxFailures });
    s.applies('n1');
    s.after(PAST_DEADLINE);
    return s;
  };

  it('is lower once a node has answered late that it has the config', () => {
    const s = lost(1);
    expect(unknownIn(s)).toEqual([1, 1, 1]);
    s.nodeReports('n0', 'c1-new', { kind: 'applied', verdict: 'applied', lease: s.lease('n0').lease });
    expect(unknownIn(s)).toEqual([0, 2, 0]);
    s.given(committed('c1')).when();
    expect(unknownIn(s)).toEqual([0, 2, 0]);
    expect(s.rollout('c1').unknown).toBe(1);
  });

  it('does not contain a node that somebody has skipped since, which is deferred', () => {
    const s = lost(1);
    s.asks({ op: 'node.skip', node: 'n0', by: 'me', reason: '' });
    s.after(PAST_DEADLINE);
    s.given(committed('c1')).when();
    expect(unknownIn(s)).toEqual([0, 1, 1]);
    s.nodeReports('n0', 'c1-new', { lease: s.lease('n0').lease });
    expect(unknownIn(s)).toEqual([0, 2, 0]);
  });

  it('stays in a rollback, because it is why the change is rolled back', () => {
    const s = lost(0);
    s.nodeReports('n0', 'old', { kind: 'failed', verdict: 'failed', lease: s.lease('n0').lease });
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'reverting', unknown: 1 });
  });
});
