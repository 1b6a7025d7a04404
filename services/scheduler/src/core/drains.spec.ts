import type { NewFact } from '#libs/contracts';
import { migrated } from '#libs/engine';
import { accepted, committed, factOf, linesOf, pool, renderedChange, validated } from '#libs/testing';
import { DRAIN, MINUTE, Scheduler, settledAs, types } from './scheduler.fixture.js';

const stopped = (node: string, lease: string, outcome: 'failed' | 'deferred') =>
  factOf('node.drain.stopped', { node, lease, pool: 'edge', outcome, reason: 'a budget holds default/web' });
const uncordoned = (node: string, lease: string) => factOf('node.uncordoned', { node, lease, pool: 'edge' });

/** A fleet in a pool with these drain settings, during a rollout that drains. */
function draining(drain: object, ...names: readonly string[]): Scheduler {
  const s = new Scheduler();
  s.given(
    accepted('c9', { apply: [pool('edge', 1, 'edge', { drain })] }),
    renderedChange('c9', {}),
    validated('c9'),
  ).when();
  s.given(committed('c9')).fleet(names, { role: 'edge' });
  s.actions = DRAIN;
  s.rolls('c1', names);
  expect(s.lease('n0').phase).toBe('draining');
  return s;
}

const granted = (s: Scheduler) => s.ledger.facts.filter((fact) => fact.type === 'node.lease.granted');

describe('a drain', () => {
  it('is granted with the drain settings of the pool, if there are any', () => {
    expect(granted(draining({ onTimeout: 'defer', emptyDir: 'evict' }, 'n0'))).toMatchObject([
      { lease: 'n0-l1', drain: { onTimeout: 'defer', emptyDir: 'evict' } },
    ]);
    expect(granted(draining({}, 'n0'))[0]?.drain).toBeUndefined();
  });

  it('that was deferred is cancelled, and the rollout continues without the node, which is deferred (MCO #1578)', () => {
    const s = draining({ onTimeout: 'defer' }, 'n0', 'n1');
    const facts = s.given(stopped('n0', 'n0-l1', 'deferred')).when();
    expect(settledAs(facts)).toEqual(['n0 cancelled']);
    expect(linesOf(facts, 'node', 'reason')).toContain('node.deferred n0 deferred: a budget holds default/web');
    expect(s.rollout('c1')).toMatchObject({ phase: 'rolling', failed: 0 });
    s.given(uncordoned('n0', 'n0-l1')).when();
    s.given(factOf('node.drained', { node: 'n1', lease: 'n1-l1', pool: 'edge' })).when();
    s.applies('n1');
    s.given(uncordoned('n1', 'n1-l1'));
    expect(types(s.when())).toContain('node.lease.released');
    expect(s.rollout('c1').phase).toBe('complete');
    expect(s.status('n0').deferred).toBe('deferred: a budget holds default/web');
  });

  it('that failed makes the node fail, with the block as its reason', () => {
    const s = draining({ onTimeout: 'fail' }, 'n0');
    expect(settledAs(s.given(stopped('n0', 'n0-l1', 'failed')).when())).toEqual(['n0 failed']);
    expect(s.rollout('c1')).toMatchObject({
      phase: expect.stringMatching(/^revert/),
      reason: 'n0 is failed: a budget holds default/web',
    });
  });

  it('that does not end is also deferred at its deadline if the pool says so', () => {
    const s = draining({ onTimeout: 'defer' }, 'n0');
    expect(settledAs(s.after(10 * MINUTE))).toEqual(['n0 cancelled']);
    expect(s.status('n0').deferred).toBe('deferred: not drained within 600 s');
  });

  it('that was stopped never lets the lease continue, whatever is reported later (SRIOV #682, #1090)', () => {
    const s = draining({}, 'n0');
    const facts = s
      .given(stopped('n0', 'n0-l1', 'failed'), factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'edge' }))
      .when();
    expect(types(facts)).not.toContain('node.lease.applying');
    expect(settledAs(facts)).toEqual(['n0 failed']);
  });

  it('of a lease outside a rollout that was deferred is tried again later, as after a failure', () => {
    const s = draining({ onTimeout: 'defer' }, 'n0');
    s.given(stopped('n0', 'n0-l1', 'deferred')).when();
    s.given(uncordoned('n0', 'n0-l1')).when();
    s.given(committed('c1')).when();
    expect(s.lease('n0')).toMatchObject({ kind: 'corrective', change: '', phase: 'draining', lease: 'n0-l2' });
    expect(settledAs(s.given(stopped('n0', 'n0-l2', 'deferred')).when())).toEqual(['n0 failed']);
    expect(types(s.given(uncordoned('n0', 'n0-l2')).when())).toEqual(['node.lease.released']);
    expect(s.after(30_000)).toEqual([]);
    expect(types(s.after(60 * MINUTE))).toContain('node.lease.granted');
  });

  describe('whose pool has new drain settings', () => {
    const amends = (s: Scheduler, change: string, drain: object, more: object = {}) => {
      s.given(
        accepted(change, { apply: [pool('edge', 1, 'edge', { drain, ...more })] }),
        renderedChange(change, {}),
        validated(change),
      ).when();
      return s.given(committed(change)).when();
    };
    const amendments = (facts: readonly NewFact[]) => facts.filter((fact) => fact.type === 'node.lease.amended');

    it('continues with them, amended once, and its time starts over', () => {
      const s = draining({ onTimeout: 'fail' }, 'n0');
      s.after(9 * MINUTE);
      expect(amendments(amends(s, 'c2', { onTimeout: 'defer', emptyDir: 'evict' }))).toMatchObject([
        {
          node: 'n0',
          pool: 'edge',
          lease: 'n0-l1',
          change: 'c1',
          drainMs: 600_000,
          drain: { onTimeout: 'defer', emptyDir: 'evict' },
        },
      ]);
      expect(s.when()).toEqual([]);
      expect(settledAs(s.after(9 * MINUTE))).toEqual([]);
      expect(settledAs(s.after(MINUTE))).toEqual(['n0 cancelled']);
      expect(s.status('n0').deferred).toBe('deferred: not drained within 600 s');
    });

    it('has the time that they set', () => {
      const s = draining({}, 'n0');
      amends(s, 'c2', {}, { drainTimeout: '1m' });
      expect(s.lease('n0')).toMatchObject({ phase: 'draining', drainMs: 60_000 });
      expect(settledAs(s.after(MINUTE))).toEqual(['n0 failed']);
    });

    it('is not amended by the same settings in another order, or those of another pool', () => {
      const s = draining({ onTimeout: 'defer', emptyDir: 'evict' }, 'n0');
      expect(amendments(amends(s, 'c2', { emptyDir: 'evict', onTimeout: 'defer' }, { applyTimeout: '90s' }))).toEqual(
        [],
      );
      s.given(
        accepted('c3', { apply: [pool('other', 1, 'other', { drain: { onTimeout: 'force' } })] }),
        renderedChange('c3', {}),
        validated('c3'),
      ).when();
      expect(amendments(s.given(committed('c3')).when())).toEqual([]);
    });

    it('is not amended by settings that are only proposed, nor when its pool is deleted', () => {
      const s = draining({ onTimeout: 'defer' }, 'n0');
      s.given(
        accepted('c2', { apply: [pool('edge', 1, 'edge', { drain: { onTimeout: 'force' } })] }),
        renderedChange('c2', {}),
        validated('c2'),
      );
      expect(amendments(s.when())).toEqual([]);
      s.given(
        accepted('c3', { delete: [{ kind: 'Pool', name: 'edge' }] }),
        renderedChange('c3', {}),
        validated('c3'),
      ).when();
      expect(amendments(s.given(committed('c3')).when())).toEqual([]);
    });

    it('is amended once by a copy that starts', () => {
      const s = draining({}, 'n0');
      s.given(
        accepted('c2', { apply: [pool('edge', 1, 'edge', { drain: { onTimeout: 'force' } })] }),
        renderedChange('c2', {}),
        validated('c2'),
      ).when();
      s.given(committed('c2')).restart();
      expect(amendments(s.when())).toMatchObject([{ lease: 'n0-l1', drain: { onTimeout: 'force' } }]);
      s.restart();
      expect(s.when()).toEqual([]);
    });

    it('uses the pool that the node is in now if its own has no fragment', () => {
      const s = new Scheduler().fleet(['n0'], { role: 'edge' });
      s.actions = DRAIN;
      s.rolls('c1', ['n0']);
      expect(s.lease('n0')).toMatchObject({ phase: 'draining', pool: 'default' });
      expect(amendments(amends(s, 'c2', { emptyDir: 'evict' }))).toMatchObject([
        { node: 'n0', pool: 'default', lease: 'n0-l1', drain: { emptyDir: 'evict' } },
      ]);
      expect(s.when()).toEqual([]);
    });

    it('continues as granted with an older dump that has no drain settings', () => {
      const s = draining({ onTimeout: 'fail' }, 'n0');
      const dumped = s.core.dump(s.state) as { readonly nodes: readonly [string, { readonly lease?: object }][] };
      const before = {
        ...dumped,
        nodes: dumped.nodes.map(([name, { lease, ...node }]) => [
          name,
          {
            ...node,
            lease: Object.fromEntries(Object.entries(lease ?? {}).filter(([field]) => field !== 'drainTerms')),
          },
        ]),
      };
      const loaded = s.core.load(s.core.migrations?.[6]?.(before), 0) as typeof s.state;
      expect(loaded.nodes.get('n0')?.lease).toMatchObject({ phase: 'draining' });
      expect(loaded.nodes.get('n0')?.lease).not.toHaveProperty('drainTerms');
    });

    it('continues from a dump of version 11, which wrote absent values as empty texts', () => {
      const s = draining({ onTimeout: 'fail' }, 'n0');
      type Rows = readonly (readonly [string, { readonly lease?: object }])[];
      const { nodes, rollouts, ...rest } = s.core.dump(s.state) as { readonly nodes: Rows; readonly rollouts: Rows };
      const before = {
        ...rest,
        nodes: nodes.map(([name, node]) => [name, { ...node, change: '', lease: { ...node.lease, drainTerms: '' } }]),
        rollouts: rollouts.map(([name, rollout]) => [name, { ...rollout, endedAt: '', supersededBy: '' }]),
      };
      const loaded = s.core.load(migrated(s.core, 11, before), 0) as typeof s.state;
      const [node, rollout] = [loaded.nodes.get('n0'), loaded.rollouts.get('c1')];
      expect([node?.change, node?.lease?.phase]).toEqual([undefined, 'draining']);
      for (const [row, field] of [
        [node?.lease, 'drainTerms'],
        [rollout, 'endedAt'],
        [rollout, 'supersededBy'],
      ] as const) {
        expect(row).toBeDefined();
        expect(row).not.toHaveProperty(field);
      }
    });

    it('does not affect a node that is already drained', () => {
      const s = draining({}, 'n0');
      s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'edge' })).when();
      expect(s.lease('n0').phase).toBe('applying');
      expect(amendments(amends(s, 'c2', { onTimeout: 'force' }))).toEqual([]);
    });
  });
});
