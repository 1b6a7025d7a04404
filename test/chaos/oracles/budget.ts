import { isLeaseEnd, type Fact } from '#libs/contracts';
import type { Work } from '../../e2e/budget-witness.js';
import type { Oracle } from './oracle.js';

/**
 * I1, twice. From the ledger: at each grant that takes a unit, those of the pool that are unavailable, as known then,
 * are with it at most the budget. From the nodes' disks: never did more nodes of a pool work at once on leases that
 * take a unit.
 */
export const budget: Oracle = {
  name: 'I1 budget',
  judge({ facts, works, pools }) {
    const grants = grantsOf(facts);
    return pools.flatMap(({ pool, budget: units, nodes }) => [
      ...grants
        .filter(
          (grant) =>
            grant.pool === pool &&
            grant.takesUnit &&
            nodes.filter((node) => grant.unavailable.has(node)).length >= units,
        )
        .map(
          ({ lease, node, unavailable }) =>
            `${lease} was granted to ${node} while ${nodes.filter((one) => unavailable.has(one)).join(', ')} of ${pool} were unavailable, and ${units} may be`,
        ),
      ...tooMany(
        works,
        new Set(grants.filter((grant) => grant.pool === pool && grant.takesUnit).map(({ lease }) => lease)),
        units,
      ).map((text) => `${pool}: ${text}`),
    ]);
  },
};

interface Grant {
  readonly lease: string;
  readonly node: string;
  readonly pool: string;
  readonly takesUnit: boolean;
  readonly unavailable: ReadonlySet<string>;
}

function grantsOf(facts: readonly Fact[]): readonly Grant[] {
  const held = new Map<string, string>();
  const down = new Set<string>();
  const broken = new Set<string>();
  const grants: Grant[] = [];
  for (const fact of facts) {
    if (isLeaseEnd(fact)) held.delete(fact.lease);
    if (fact.type === 'node.silent') down.add(fact.node);
    else if (fact.type === 'node.heard') down.delete(fact.node);
    else if (fact.type === 'node.reported' || (fact.type === 'node.lease.settled' && fact.report !== undefined))
      void (fact.restored ? broken.delete(fact.node) : broken.add(fact.node));
    else if (fact.type === 'node.lease.granted') {
      const unavailable = new Set([...held.values(), ...down, ...broken]);
      grants.push({
        lease: fact.lease,
        node: fact.node,
        pool: fact.pool,
        takesUnit: !fact.free && !unavailable.has(fact.node),
        unavailable,
      });
      if (!fact.free) held.set(fact.lease, fact.node);
    }
  }
  return grants;
}

function tooMany(works: readonly Work[], leases: ReadonlySet<string>, units: number): readonly string[] {
  const counted = works.filter(({ lease, fromMs, toMs }) => leases.has(lease) && fromMs < toMs);
  return counted.flatMap(({ fromMs }) => {
    const together = counted.filter((work) => work.fromMs <= fromMs && fromMs < work.toMs);
    return together.length > units
      ? [`${together.map(({ node, lease }) => `${node} (${lease})`).join(', ')} worked at once, and ${units} may`]
      : [];
  });
}
