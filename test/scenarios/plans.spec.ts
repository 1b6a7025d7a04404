import fc from 'fast-check';
import type { Fragment, PlanAnswer } from '#libs/contracts';
import { atOnce } from '#libs/engine';
import { API_VERSION } from '#libs/manifests';
import { file, pool } from '#libs/testing';
import { planChange } from '../../services/merger/src/core/index.js';
import { Installation, sha256 } from './installation.fixture.js';

const ROLES = ['a', 'b', 'c'] as const;
const budget = fc.constantFrom(1, 2, 3, '50%', '100%');
/** Pools by name. Several pools may select the same role. */
const pools = fc
  .uniqueArray(fc.record({ name: fc.constantFrom('a', 'b', 'all'), role: fc.constantFrom(...ROLES), budget }), {
    maxLength: 3,
    selector: ({ name }) => name,
  })
  .map((all) => all.map((one) => pool(one.name, one.budget, one.role)));
const fleets = fc.record({ a: fc.nat(5), b: fc.nat(5), c: fc.nat(3) });

function planOf(
  i: Installation,
  apply: readonly Fragment[],
  remove: readonly { readonly kind: string; readonly name: string }[] = [],
): PlanAnswer {
  const manifests = apply.map(({ kind, name, spec }) => ({ apiVersion: API_VERSION, kind, metadata: { name }, spec }));
  const body = { apply: manifests, delete: remove };
  return atOnce(planChange(i.merger.state, { body, source: undefined }, sha256)) as PlanAnswer;
}

/** How many nodes may change at once according to the plan, and how many leases the rollout then grants. */
function compare(
  sizes: Readonly<Record<(typeof ROLES)[number], number>>,
  committed: readonly Fragment[],
  brought: readonly Fragment[],
  deleted: readonly string[],
) {
  const i = new Installation();
  for (const role of ROLES)
    i.starts(
      Array.from({ length: sizes[role] }, (_, n) => `${role}${n}`),
      { role },
    );
  if (committed.length > 0) i.commits(committed);
  const apply = [...brought, file('one', 'x')];
  const remove = deleted
    .filter((name) => committed.some((one) => one.name === name) && !brought.some((one) => one.name === name))
    .map((name) => ({ kind: 'Pool', name }));
  const plan = planOf(i, apply, remove);
  const first = i.ledger.last;
  i.rolls(apply, { remove });
  const granted: Record<string, number> = {};
  for (const fact of i.ledger.facts.slice(first))
    if (fact.type === 'node.lease.granted') granted[fact.pool] = (granted[fact.pool] ?? 0) + 1;
  const planned = Object.fromEntries(
    Object.entries(plan.pools).map(([name, { nodes, budget: units }]) => [name, Math.min(nodes, units)]),
  );
  return { plan, planned, granted };
}

describe('the plan of a change', () => {
  it('says how many nodes change at once, whatever pools the change brings, changes or deletes', () => {
    fc.assert(
      fc.property(fleets, pools, pools, fc.subarray(['a', 'b', 'all']), (sizes, committed, brought, deleted) => {
        const { planned, granted } = compare(sizes, committed, brought, deleted);
        expect(granted).toEqual(planned);
      }),
      { numRuns: Number(process.env['LIVES'] ?? 60) },
    );
  });

  it('counts with the pools that another open rollout brings', () => {
    const i = new Installation().starts(['a0', 'a1', 'a2', 'a3'], { role: 'a' }).starts(['b0'], { role: 'b' });
    i.rolls([pool('all', 2, 'a'), file('other', 'x', 'b')]);
    const change = [file('one', 'x', 'a')];
    expect(planOf(i, change).pools).toEqual({ all: { nodes: 4, budget: 2 } });
    i.rolls(change);
    expect(i.atWork()).toEqual(['a0', 'a1', 'b0']);
  });

  it('of nodes that move into a pool with it follows that pool', () => {
    const { plan, granted } = compare({ a: 5, b: 0, c: 0 }, [], [pool('a', 3)], []);
    expect(plan.pools).toEqual({ a: { nodes: 5, budget: 3 } });
    expect(granted).toEqual({ a: 3 });
  });

  it.each([
    [1, 4],
    [4, 1],
  ])('of a pool whose budget goes from %d to %d uses the stricter one', (before, after) => {
    const { plan, granted } = compare({ a: 5, b: 0, c: 0 }, [pool('a', before)], [pool('a', after)], []);
    expect(plan.pools).toEqual({ a: { nodes: 5, budget: 1 } });
    expect(granted).toEqual({ a: 1 });
  });
});
