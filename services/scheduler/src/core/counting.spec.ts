import {
  accepted,
  changed,
  committed,
  factOf,
  heard,
  joined,
  left,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { DRAIN, grants, leading, Scheduler } from './scheduler.fixture.js';

const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const pools = (...wanted: readonly ReturnType<typeof pool>[]): Scheduler => {
  const s = new Scheduler().given(accepted('c9', { apply: wanted }), renderedChange('c9', {}), validated('c9'));
  s.when();
  s.given(committed('c9')).when();
  return s;
};
const down = (node: string) => factOf('node.unavailable', { node, because: 'NotReady' });
const up = (node: string) => factOf('node.available', { node });
const touchedBy = (s: Scheduler, act: () => unknown): readonly string[] => {
  s.core.takeTouched(s.state);
  act();
  return [...s.core.takeTouched(s.state)].sort();
};
const desires = (s: Scheduler, node: string, hash: string) =>
  s.given(renderedNode(node, hash, { cause: 'relabel' }), reviewedNode(node, hash));
/** The order in which nodes get the one unit of the pool. */
const turns = (s: Scheduler, first: string): readonly string[] => {
  const order: string[] = [];
  for (let node: string | undefined = first; node !== undefined; [node] = s.atWork()) {
    order.push(node);
    s.applies(node);
  }
  return order.slice(1);
};

describe('the queue for a unit', () => {
  /** n0 has the only unit. c2 wants n2, and after it c1 wants n1. */
  const waiting = () => {
    const s = pools(pool('edge', 1, 'edge', { drift: 'repair' }), pool('core', 1)).fleet(['n0', 'n1', 'n2'], {
      role: 'edge',
    });
    s.rolls('c0', ['n0']);
    s.rolls('c2', ['n2']);
    s.rolls('c1', ['n1']);
    return s;
  };

  it('is ordered by the time since which a node wants the same', () => {
    expect(turns(waiting(), 'n0')).toEqual(['n2', 'n1']);
  });

  it.each([
    ['reports again', (s: Scheduler) => s.nodeReports('n2', 'old')],
    ['was out of service in between', (s: Scheduler) => s.given(down('n2'), up('n2'))],
    [
      'was in another pool in between',
      (s: Scheduler) => s.given(changed('n2', { role: 'core' }), changed('n2', { role: 'edge' })),
    ],
  ])('keeps the place of a node that %s', (_, act) => {
    const s = waiting();
    act(s);
    expect(turns(s, 'n0')).toEqual(['n2', 'n1']);
  });

  it('moves a node to the end if it wants something else: another change, another config, or another reason', () => {
    const superseded = waiting();
    superseded.rolls('c3', ['n2'], { to: 'c2-new', replaces: ['c2'] });
    expect(turns(superseded, 'n0')).toEqual(['n1', 'n2']);
    const corrected = waiting().fleet(['n3', 'n4'], { role: 'edge' });
    for (const node of ['n3', 'n4']) desires(corrected, node, 'x');
    desires(corrected, 'n3', 'y');
    expect(turns(corrected, 'n0')).toEqual(['n2', 'n1', 'n4', 'n3']);
    const drifted = waiting().fleet(['n3', 'n4'], { role: 'edge' });
    for (const node of ['n3', 'n4']) drifted.nodeReports(node, 'strange');
    drifted.when(drifted.message('n3', 'old', { kind: 'drifted', differences: ['/a'] }));
    expect(turns(drifted, 'n0')).toEqual(['n4', 'n2', 'n1', 'n3']);
  });

  it('is left by a node that moves to another pool or becomes unavailable', () => {
    expect(
      grants(
        waiting()
          .given(changed('n1', { role: 'core' }))
          .when(),
      ),
    ).toEqual(['n1 forward c1-new']);
    const s = waiting().given(down('n1'));
    // It needs no unit, but no more nodes change at once than there are units.
    expect(grants(s.when())).toEqual([]);
    expect(grants(s.applies('n0'))).toEqual(['n1 forward c1-new']);
  });

  it('is ordered by time even if the sequence has one more digit', () => {
    const s = pools(pool('edge', 1)).fleet(['n0', 'n1', 'n2'], { role: 'edge' });
    s.rolls('c0', ['n0']);
    while (s.ledger.last < 95) s.given(up('n0'));
    s.rolls('c2', ['n2']);
    expect(s.ledger.last).toBe(99); // the fact that makes it wait
    s.rolls('c1', ['n1']);
    expect(turns(s, 'n0')).toEqual(['n2', 'n1']);
  });
});

describe('nodes that several pools select', () => {
  /** Half of them, or two: whichever is less. */
  const shared = (count: number) =>
    pools(pool('half', '50%', 'edge'), pool('two', 2, 'edge')).fleet(names('n', count), { role: 'edge' });
  const poolsOf = (s: Scheduler, count: number) => [...new Set(names('n', count).map((node) => s.status(node).pool))];

  it('are all in the pool with the smaller budget for their number', () => {
    expect([poolsOf(shared(3), 3), poolsOf(shared(5), 5), poolsOf(shared(6), 6)]).toEqual([
      ['half'],
      ['half'],
      ['two'],
    ]);
  });

  it('move together as their number changes, and count where they are', () => {
    const s = shared(6);
    s.given(left('n5'), left('n4'), left('n3'));
    expect([poolsOf(s, 3), s.view('pools', 'half').members, s.view('pools', 'two').members]).toEqual([['half'], 3, 0]);
    s.given(joined('n3', { role: 'edge' }), joined('n4', { role: 'edge' }), joined('n5', { role: 'edge' }));
    expect([poolsOf(s, 6), s.view('pools', 'half').members, s.view('pools', 'two').members]).toEqual([['two'], 0, 6]);
    s.given(...names('n', 4).map((node) => changed(node, {})));
    expect([s.status('n4').pool, s.status('n5').pool, s.view('pools', 'half').members]).toEqual(['half', 'half', 2]);
  });

  it('count in both pools if they move while they are unavailable', () => {
    const s = shared(6).given(silent('n0'));
    s.given(left('n5'), left('n4'), left('n3'));
    expect([s.unavailable('half'), s.unavailable('two')]).toEqual([['n0'], ['n0']]);
    s.given(heard('n0'));
    expect([s.unavailable('half'), s.unavailable('two')]).toEqual([[], []]);
  });

  it('do not move because of a commit that leaves their pools unchanged', () => {
    const s = shared(3).given(silent('n0'));
    s.rolls('c1', [], { apply: [pool('other', 1)] });
    expect(touchedBy(s, () => s.given(committed('c1', 2)))).toEqual(
      expect.arrayContaining(['pools/half', 'pools/other', 'pools/two']),
    );
    expect([poolsOf(s, 3), s.unavailable('half'), s.unavailable('two'), s.view('pools', 'other').members]).toEqual([
      ['half'],
      ['n0'],
      [],
      0,
    ]);
  });
});

describe('a node that moved and moved back while it was unavailable', () => {
  it('counts in both pools until it is available, and then only in its own', () => {
    const s = pools(pool('a', 1), pool('b', 1)).fleet(['n0'], { role: 'a' });
    s.given(silent('n0'), changed('n0', { role: 'b' }), changed('n0', { role: 'a' }));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([['n0'], ['n0']]);
    s.given(heard('n0'));
    expect([s.unavailable('a'), s.unavailable('b')]).toEqual([[], []]);
  });

  it('updates the views of both pools', () => {
    const s = pools(pool('a', 1), pool('b', 1))
      .fleet(['n0'], { role: 'a' })
      .given(silent('n0'), changed('n0', { role: 'b' }));
    expect(touchedBy(s, () => s.given(heard('n0')))).toEqual(['pools/a', 'pools/b', 'status/n0']);
  });
});

describe('a budget', () => {
  it('is not lowered by a change that has not started', () => {
    const s = pools(pool('edge', 3)).given(accepted('c1', { apply: [pool('edge', 1)] }));
    expect(s.view('pools', 'edge').budget).toBe(3);
  });

  it('is needed by a fresh node from its second lease on, even if it still reports `fresh`', () => {
    const s = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    s.given(joined('f0', { role: 'edge' }, { fresh: true }));
    s.nodeReports('f0', 'empty', { fresh: true });
    desires(s, 'f0', 'old').when();
    s.applies('f0');
    s.nodeReports('f0', 'old', { fresh: true });
    s.rolls('c1', ['n0']);
    expect(grants(desires(s, 'f0', 'more').when())).toEqual([]);
  });
});

describe('a node with a lease of a rollout that it has left', () => {
  it('is shown in that rollout until its lease is released, which updates the view', () => {
    const s = pools(pool('edge', 2)).fleet(['n0', 'n1'], { role: 'edge' });
    s.actions = DRAIN;
    s.given(accepted('c1'), renderedChange('c1', leading(['n0', 'n1'], 'old', 'x')), validated('c1')).when();
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'edge' })).when();
    s.given(factOf('node.rendered', { node: 'n0', hash: 'old', recipe: 'r', outdatedIn: ['c1'] }));
    expect(s.view('rollouts', 'c1').worst.map(({ node, state }) => `${node} ${state}`)).toEqual([
      'n1 draining',
      'n0 applying',
    ]);
    s.applies('n0');
    expect(s.view('rollouts', 'c1').worst.map(({ node, state }) => `${node} ${state}`)).toEqual([
      'n1 draining',
      'n0 left',
    ]);
    s.showViews = () => undefined;
    s.given(factOf('node.uncordoned', { node: 'n0', lease: 'n0-l1', pool: 'edge' }));
    expect(touchedBy(s, () => s.when())).toContain('rollouts/c1');
    expect(s.view('rollouts', 'c1').worst.map(({ node, state }) => `${node} ${state}`)).toEqual(['n1 draining']);
  });
});
