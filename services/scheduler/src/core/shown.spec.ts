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

describe('what a rollout shows while others are under way', () => {
  /** c1 in pool b and then a, c2 in pool c; a1 has failed c1, c2 has somebody at work. */
  const neighbours = () => {
    const s = pools(pool('b', 1), pool('a', 1), pool('c', 1))
      .fleet(['b0', 'b1', 'b2'], { role: 'b' })
      .fleet(['a0', 'a1'], { role: 'a' })
      .fleet(['c0', 'c1'], { role: 'c' });
    s.rolls('c1', ['b0', 'b1', 'b2', 'a0', 'a1'], { maxFailures: 1 });
    s.rolls('c2', ['c0', 'c1']);
    s.answers_('a0', 'failed');
    return s;
  };

  it('is its own nodes alone, and the pools that they are in, by name', () => {
    const s = neighbours();
    expect(worst(s, 'c1')).toEqual(['a0 failed it is failed', 'a1 applying forward', 'b0 applying forward']);
    expect(worst(s, 'c2')).toEqual(['c0 applying forward']);
    expect(s.view('rollouts', 'c1').pools).toEqual({
      a: { nodes: 2, done: 0, active: 1, untouched: 0 },
      b: { nodes: 3, done: 0, active: 1, untouched: 0 },
    });
    expect(Object.keys(s.view('rollouts', 'c1').pools)).toEqual(['a', 'b']);
    expect(s.view('rollouts', 'c2').pools).toEqual({ c: { nodes: 2, done: 0, active: 1, untouched: 0 } });
  });

  it('has no pool in it that all of its nodes have left', () => {
    const s = neighbours().given(changed('c0', { role: 'a' }), changed('c1', { role: 'b' }));
    expect(Object.keys(s.view('rollouts', 'c2').pools)).toEqual(['a', 'b']);
    s.given(left('c1')).when();
    expect(Object.keys(s.view('rollouts', 'c2').pools)).toEqual(['a']);
  });

  it('does not take the lease of an older rollout, or of none, for its own', () => {
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

describe('what a rollout shows that rolls back', () => {
  it.each(['failed', 'invalid'] as const)('has on top who turned it, as %s, though that is back already', (verdict) => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.answers_('n1', verdict);
    expect(worst(s, 'c1')).toEqual([`n1 ${verdict} it is ${verdict}`, 'n0 applying rollback']);
    expect(pageOf(s, { op: 'rollout.get', change: 'c1', cursor: 'n0', limit: 9 })['nodes']).toMatchObject([
      { node: 'n1', state: verdict },
      { node: 'n2', state: 'untouched', reason: '' },
    ]);
    expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 3, done: 2, active: 1, untouched: 1 } });
    s.applies('n0');
    expect(s.view('rollouts', 'c1').pools).toEqual({ default: { nodes: 3, done: 3, active: 0, untouched: 1 } });
  });

  it('has on top who did not answer, and has that back once it says that it is', () => {
    const s = pools(pool('edge', 2)).fleet(['n0', 'n1', 'n2'], { role: 'edge' });
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.applies('n2');
    s.after(PAST_DEADLINE);
    expect(worst(s, 'c1')).toEqual(['n1 unknown no answer within 120 s', 'n0 applying rollback']);
    s.reports_('n1', 'old', { lease: 'n1-l1', verdict: 'refused' });
    s.applies('n0');
    s.applies('n2');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(worst(s, 'c1')).toEqual(['n1 rolled-back']);
  });
});

describe('what a rollout shows that is over', () => {
  /** n1 failed, n2 and n3 were away: all three are deferred by c1. */
  const over = () => {
    const s = fleetOf('n0', 'n1', 'n2', 'n3').given(...away('n2'), ...away('n3'));
    s.rolls('c1', ['n0', 'n1', 'n2', 'n3'], { maxFailures: 1 });
    s.applies('n0');
    s.answers_('n1', 'failed');
    s.given(committed('c1')).when();
    expect(worst(s, 'c1')).toEqual([
      'n1 failed it is failed',
      'n2 deferred skipped by me',
      'n3 deferred skipped by me',
    ]);
    return s;
  };

  it('loses those it deferred one by one, and keeps who failed', () => {
    const s = over();
    s.applies('n1'); // corrected, which ends its deferral; that it failed stays true
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

  it('is answered node by node as far as it is remembered: the worst', () => {
    const s = over();
    const page = pageOf(s, { op: 'rollout.get', change: 'c1', cursor: '', limit: 1 });
    expect((page['nodes'] as { node: string }[]).map(({ node }) => node)).toEqual(['n1', 'n2', 'n3']);
    expect(page).not.toHaveProperty('next');
  });

  it('defers nothing that another has taken over, though the node lacks it', () => {
    const s = fleetOf('n0', 'n1').given(...away('n1'));
    s.reports_('n1', 'strange', { incarnation: 2 });
    s.rolls('c1', ['n0', 'n1']);
    expect(s.view('rollouts', 'c1').deferred).toBe(1);
    s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    expect([s.view('rollouts', 'c1').deferred, worst(s, 'c1')]).toEqual([0, []]);
    expect(s.view('rollouts', 'c2').deferred).toBe(1);
  });

  it('says how it ended: complete with no reason, reverted with that of its turning', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    expect(s.applies('n0').at(-1)).toMatchObject({ type: 'rollout.complete', reason: '' });
    s.given(committed('c1')).when();
    s.rolls('c2', ['n1']);
    expect(s.answers_('n1', 'failed').at(-1)).toMatchObject({
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

  it('to a pause of what is aborted already is that it rolls back', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.aborts('c1');
    s.pauses('c1');
    expect(s.answers).toEqual([{ ok: false, code: 'conflict', message: 'c1 is already reverting' }]);
  });

  it('to a skip of who has no lease names none in its fact', () => {
    const s = fleetOf('n0').given(silent('n0'));
    expect(s.skips('n0')).toMatchObject([{ type: 'node.skipped', node: 'n0', lease: '', change: '' }]);
  });
});

describe('what a rollout leaves behind', () => {
  it('is deferred in the pool of its node, and by no lease', () => {
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

  it('is not there before it starts: one invalid among the configs that it brings is enough for another review', () => {
    const s = fleetOf('n0', 'n1', 'x');
    s.rolls('c0', ['x'], { to: 'bad' });
    s.given(
      accepted('c1'),
      renderedChange('c1', { n0: { from: 'old', to: 'fine', recipe: '' }, n1: { from: 'old', to: 'bad', recipe: '' } }),
      validated('c1'),
    );
    s.answers_('x', 'invalid');
    expect(s.state.rollouts.has('c1')).toBe(false);
  });
});

describe('a stall', () => {
  it('names by name who holds the units in all pools of the rollout', () => {
    const s = pools(pool('a', 1), pool('b', 1))
      .fleet(['a0', 'z'], { role: 'a' })
      .fleet(['b0', 'm'], { role: 'b' })
      .given(silent('z'), silent('m'));
    expect(s.rolls('c1', ['a0', 'b0']).at(-1)).toMatchObject({ type: 'rollout.stalled', nodes: ['m', 'z'] });
  });

  it('is said though another rollout that is paused has units left', () => {
    const s = pools(pool('a', 1), pool('b', 1))
      .fleet(['a0', 'z'], { role: 'a' })
      .fleet(['b0'], { role: 'b' })
      .given(silent('z'), accepted('c2'));
    s.pauses('c2');
    s.given(renderedChange('c2', leading(['b0'], 'old', 'x')), validated('c2')).when();
    expect(s.view('rollouts', 'c2')).toMatchObject({ paused: true, pending: 1 });
    expect(s.rolls('c1', ['a0']).at(-1)).toMatchObject({ type: 'rollout.stalled', change: 'c1', nodes: ['z'] });
  });

  it('is said of nobody whose lease has ended and is only to be released', () => {
    const s = fleetOf('n0', 'n1');
    s.actions = DRAIN;
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'default' })).when();
    expect(types(s.answers_('n0', 'failed'))).toEqual([
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
