import { isLeaseEnd, takenReport, type Fact, type LeaseKind } from '#libs/contracts';
import { mayRollBackBeyond, type UnitHolder } from '#libs/testing';
import type { Work } from '../../e2e/budget-witness.js';
import type { Oracle } from './oracle.js';

/**
 * I1, checked in two ways. From the ledger: at each grant that takes a unit, the node and the unavailable nodes of the
 * pool that are known at that moment do not exceed the budget. One more node may roll back while silent or unknown
 * nodes hold units. From the disks of the nodes: the number of nodes of a pool that work on such leases at the same
 * time never exceeds the budget, with the same exception.
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
            nodes.filter((node) => grant.unavailable.has(node)).length >= units &&
            !isBeyond(grant, nodes, units),
        )
        .map(
          ({ lease, node, unavailable }) =>
            `${lease} was granted to ${node} while ${nodes.filter((one) => unavailable.has(one)).join(', ')} of ${pool} were unavailable, and ${units} may be`,
        ),
      ...tooMany(
        works,
        new Map(
          grants
            .filter((grant) => grant.pool === pool && grant.takesUnit)
            .map((grant) => [grant.lease, isBeyond(grant, nodes, units)]),
        ),
        units,
      ).map((text) => `${pool}: ${text}`),
    ]);
  },
};

interface Grant {
  readonly lease: string;
  readonly node: string;
  readonly pool: string;
  readonly kind: LeaseKind;
  readonly takesUnit: boolean;
  readonly unavailable: ReadonlyMap<string, UnitHolder>;
}

interface HeldLease {
  readonly node: string;
  readonly kind: LeaseKind;
  readonly unknown: boolean;
}

const isBeyond = ({ kind, unavailable }: Grant, nodes: readonly string[], units: number): boolean =>
  nodes.filter((node) => unavailable.has(node)).length >= units &&
  mayRollBackBeyond(
    kind,
    nodes.flatMap((node) => unavailable.get(node) ?? []),
    units,
  );

function grantsOf(facts: readonly Fact[]): readonly Grant[] {
  const held = new Map<string, HeldLease>();
  const down = new Set<string>();
  const broken = new Set<string>();
  const grants: Grant[] = [];
  for (const fact of facts) {
    answer(held, fact);
    if (isLeaseEnd(fact)) held.delete(fact.lease);
    if (fact.type === 'node.silent') down.add(fact.node);
    else if (fact.type === 'node.heard') down.delete(fact.node);
    else if (fact.type === 'node.reported' || (fact.type === 'node.lease.settled' && fact.report !== undefined))
      void (fact.restored ? broken.delete(fact.node) : broken.add(fact.node));
    else if (fact.type === 'node.lease.granted') {
      const { lease, node, pool, kind, free } = fact;
      const leases = new Map([...held.values()].map((one) => [one.node, one]));
      const unavailable = new Map(
        [...leases.keys(), ...down, ...broken].map((name): [string, UnitHolder] => [
          name,
          { silent: down.has(name), lease: leases.get(name) },
        ]),
      );
      grants.push({ lease, node, pool, kind, takesUnit: !free && !unavailable.has(node), unavailable });
      if (!free) held.set(lease, { node, kind, unknown: false });
    }
  }
  return grants;
}

/** Records for the leases that are held whether the node has answered. */
function answer(held: Map<string, HeldLease>, fact: Fact): void {
  if (fact.type !== 'node.reported' && fact.type !== 'node.lease.settled') return;
  const lease = held.get(fact.lease);
  if (lease === undefined) return;
  const unknown = fact.type === 'node.lease.settled' && takenReport(fact) === undefined && fact.because === 'unknown';
  held.set(fact.lease, { ...lease, unknown });
}

/** `leases`: those that count, and whether each was granted beyond the budget. */
function tooMany(works: readonly Work[], leases: ReadonlyMap<string, boolean>, units: number): readonly string[] {
  const counted = works.filter(({ lease, fromMs, toMs }) => leases.has(lease) && fromMs < toMs);
  return counted.flatMap(({ fromMs }) => {
    const together = counted.filter((work) => work.fromMs <= fromMs && fromMs < work.toMs);
    const most = units + (together.some(({ lease }) => leases.get(lease) === true) ? 1 : 0);
    return together.length > most
      ? [`${together.map(({ node, lease }) => `${node} (${lease})`).join(', ')} worked at once, and ${most} may`]
      : [];
  });
}
