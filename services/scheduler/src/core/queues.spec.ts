import {
  accepted,
  changed,
  committed,
  factOf,
  joined,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { grants, MINUTE, NONE, Scheduler } from './scheduler.fixture.js';
import type { Plan } from './inputs.js';

const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const pools = (...wanted: readonly ReturnType<typeof pool>[]): Scheduler => {
  const s = new Scheduler().given(accepted('c9', { apply: wanted }), renderedChange('c9', {}), validated('c9'));
  s.when();
  s.given(committed('c9')).when();
  return s;
};
/** A node that has joined, is fresh, and should have `old`. */
const fresh = (s: Scheduler, role: string, ...list: readonly string[]) => {
  for (const node of list) {
    s.given(
      joined(node, { role }, { fresh: true }),
      factOf('node.reported', {
        node,
        hash: 'empty',
        incarnation: 1,
        nonce: 7,
        seq: 1,
        report: 'announced',
        restored: true,
        fresh: true,
      }),
    );
    s.given(renderedNode(node, 'old'), reviewedNode(node, 'old'));
  }
  return s;
};

describe('fresh nodes', () => {
  it('are planned ten at a time, and get ten leases at a time, in each pool', () => {
    const s = fresh(fresh(pools(pool('a', 1), pool('b', 1)), 'a', ...names('a', 12)), 'b', ...names('b', 11));
    for (const node of [...names('a', 12), ...names('b', 11)])
      s.given(renderedNode(node, `of-${node}`), reviewedNode(node, `of-${node}`));
    const needs = s.plansNeeded();
    expect(needs.map(({ node }) => node).sort()).toEqual([...names('a', 10), ...names('b', 10)].sort());
    const everything = (): Map<string, Plan> =>
      new Map(
        [...names('a', 12), ...names('b', 11)].map((node) => [
          `empty|of-${node}||${s.state.policyVersion.get()}|`,
          { ok: true, actions: NONE },
        ]),
      );
    const granted = s.decide([], everything()).facts.filter((fact) => fact.type === 'node.lease.granted');
    expect(
      granted
        .filter(({ free }) => free)
        .map(({ pool: name }) => name)
        .sort(),
    ).toEqual([...Array<string>(10).fill('a'), ...Array<string>(10).fill('b')]);
    expect(
      granted
        .filter(({ free }) => !free)
        .map(({ pool: name }) => name)
        .sort(),
    ).toEqual(['a', 'b']);
  });

  it('do not make other joining nodes exceed the budget', () => {
    const s = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    s.rolls('c1', ['n0']); // holds the unit
    s.given(joined('e0', { role: 'edge' }), renderedNode('e0', 'old'), reviewedNode('e0', 'old'));
    s.nodeReports('e0', 'empty');
    expect(grants(fresh(s, 'edge', 'f0').when())).toEqual(['f0 join old']);
  });

  it('that are targets of a rollout wait for a unit like all its targets', () => {
    const s = pools(pool('edge', 1)).fleet(['n0'], { role: 'edge' });
    s.given(joined('f0', { role: 'edge' }, { fresh: true }));
    s.nodeReports('f0', 'empty', { fresh: true });
    s.rolls('c1', ['n0']);
    expect(grants(s.rolls('c2', ['f0'], { from: 'empty' }))).toEqual([]);
  });

  it('that are unavailable still get their first lease, and it takes a unit', () => {
    const s = fresh(pools(pool('edge', 1)), 'edge', 'f0').given(
      factOf('node.unavailable', { node: 'f0', because: 'NotReady' }),
    );
    expect(s.when().filter(({ type }) => type === 'node.lease.granted')).toMatchObject([{ node: 'f0', free: false }]);
  });
});

describe('a plan', () => {
  it('for the next nodes in the queue is requested only for as many as there are units', () => {
    const s = pools(pool('edge', 2)).fleet(names('n', 5), { role: 'edge' });
    const own = Object.fromEntries(names('n', 5).map((node) => [node, { from: 'old', to: `of-${node}`, recipe: '' }]));
    s.given(accepted('c1'), renderedChange('c1', own), validated('c1'));
    expect(s.plansNeeded().map(({ node }) => node)).toEqual(['n0', 'n1']);
    s.given(silent('n4'));
    expect(s.plansNeeded().map(({ node }) => node)).toEqual(['n0']);
    s.given(silent('n3'));
    expect(s.plansNeeded()).toEqual([]);
  });
});

describe('a node that reported its config as invalid', () => {
  const refusing = () => {
    const s = new Scheduler().given(
      joined('n0', { role: 'a', zone: 'b' }),
      renderedNode('n0', 'old'),
      reviewedNode('n0', 'old'),
    );
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'invalid');
    return s;
  };

  it('is not tried again because its labels are announced in another order', () => {
    expect(
      grants(
        refusing()
          .given(changed('n0', { zone: 'b', role: 'a' }))
          .when(),
      ),
    ).toEqual([]);
  });

  it('is in no queue, and is not tried again by time', () => {
    const s = refusing();
    expect(s.view('pools', 'default').waiting).toBe(0);
    expect([s.decide().wakeAtMs, grants(s.after(60 * MINUTE))]).toEqual([undefined, []]);
  });

  it('gets forward leases in a rollout like any other', () => {
    expect(grants(refusing().rolls('c1', ['n0'], { from: 'strange' }))).toEqual(['n0 forward c1-new']);
  });
});

describe('a node that waits for its next try', () => {
  const waiting = () => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'failed');
    return s;
  };

  it('gets a forward lease in a rollout at once, and is in the queue only for that', () => {
    const s = waiting();
    expect(s.view('pools', 'default').waiting).toBe(0);
    expect(grants(s.rolls('c1', ['n0'], { from: 'strange' }))).toEqual(['n0 forward c1-new']);
    expect(s.decide().wakeAtMs).toBe(s.nowMs + 2 * MINUTE);
  });

  it('schedules no decision once it is up to date', () => {
    const s = waiting();
    s.nodeReports('n0', 'old');
    expect(s.decide().wakeAtMs).toBeUndefined();
  });
});
