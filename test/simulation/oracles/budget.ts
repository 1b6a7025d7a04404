import { isLeaseEnd, takenReport, type Fact, type FactOf, type LeaseKind } from '#libs/contracts';
import { mayRollBackBeyond, type UnitHolder } from '#libs/testing';
import { Violation, type Oracle } from '../world/world.js';
import { PoolsFromFacts } from './pools-from-facts.js';

interface BudgetState {
  joined: boolean;
  silent: boolean;
  /** In Kubernetes, or because of another tool. */
  out: boolean;
  taken: boolean;
  restored: boolean;
  skipped: boolean;
  labels: Readonly<Record<string, string>>;
  lease:
    | {
        readonly id: string;
        readonly pool: string;
        readonly free: boolean;
        readonly kind: LeaseKind;
        /** The lease has no outcome yet. */
        open: boolean;
        /** The lease ended without an answer, and there is none yet. */
        unknown: boolean;
      }
    | undefined;
}

/**
 * I1, checked in two ways. From the ledger: at each grant that takes a unit, and when another tool takes a node, this
 * node and the unavailable nodes of the pool (at work, unknown, silent, not ready or cordoned in Kubernetes, taken by
 * others, not restored) do not exceed the budget. One more node may roll back while silent or unknown nodes hold units.
 * From the machines: the number of nodes that are in the middle of a change at the same time never exceeds the largest
 * budget of the pool so far, with the same exception.
 */
export function budget(): Oracle {
  const pools = new PoolsFromFacts();
  const nodes = new Map<string, BudgetState>();
  const units = new Map<string, { readonly pool: string; readonly counts: boolean; readonly beyond: boolean }>();
  const working = new Map<string, string>();
  return {
    name: 'I1 budget',
    onFact(world, fact) {
      if (fact.type === 'node.skipped') world.excused.add(fact.node);
      if (fact.type === 'node.lease.granted') {
        const seen = nodes.get(fact.node) ?? newSeen();
        const counts = !fact.free && !wasDown(seen);
        if (seen.taken) throw new Violation(`${fact.node} is granted a lease, and another tool has taken it`);
        const beyond = counts && check(pools, nodes, fact.node, fact.pool, fact.kind) === 'beyond';
        if (!fact.free && !counts) checkDown(pools, nodes, fact.node, fact.pool);
        units.set(fact.lease, { pool: fact.pool, counts, beyond });
      }
      if (fact.type === 'node.taken' && !wasDown(nodes.get(fact.node) ?? newSeen()))
        check(pools, nodes, fact.node, fact.pool, undefined);
      see(nodes, fact);
      pools.evolve(fact);
    },
    onJournal(world, node, journal) {
      const lease = journal.work?.lease;
      if (lease === undefined) return void working.delete(node.name);
      if (working.get(node.name) === lease) return;
      working.set(node.name, lease);
      const unit = units.get(lease);
      if (unit?.counts !== true) return;
      const together = [...working].filter(
        ([name, id]) => units.get(id)?.pool === unit.pool && units.get(id)?.counts === true && !world.excused.has(name),
      );
      const isBeyond = together.some(([, id]) => units.get(id)?.beyond === true);
      const most = pools.most(unit.pool, world.nodes.size) + (isBeyond ? 1 : 0);
      if (together.length > most)
        throw new Violation(
          `${together.map(([name]) => name).join(', ')} of pool ${unit.pool} change at once, ${most} may`,
        );
    },
  };
}

/** `kind`: of the granted lease. Undefined if another tool takes the node. */
function check(
  pools: PoolsFromFacts,
  nodes: ReadonlyMap<string, BudgetState>,
  node: string,
  pool: string,
  kind: LeaseKind | undefined,
): 'within' | 'beyond' {
  const down = [...nodes].filter(([name, seen]) => name !== node && countsIn(pools, seen, pool)).map(([name]) => name);
  const most = budgetNow(pools, nodes, pool);
  if (down.length + 1 <= most) return 'within';
  const holders = down.map((name) => holderOf(nodes.get(name) as BudgetState));
  if (kind !== undefined && mayRollBackBeyond(kind, holders, most)) return 'beyond';
  throw new Violation(
    `${node} is granted a lease while ${down.join(', ')} of pool ${pool} are unavailable, ${most} may`,
  );
}

/**
 * Nodes that are already unavailable need no unit. But the number of nodes of a pool that change at the same time never
 * exceeds its budget.
 */
function checkDown(pools: PoolsFromFacts, nodes: ReadonlyMap<string, BudgetState>, node: string, pool: string): void {
  const changing = [...nodes].filter(
    ([name, { lease }]) => name !== node && lease?.open === true && lease.pool === pool && !lease.free,
  );
  const most = budgetNow(pools, nodes, pool);
  if (changing.length + 1 > most)
    throw new Violation(
      `${node} is granted a lease while ${changing.map(([name]) => name).join(', ')} of pool ${pool} change, ${most} may`,
    );
}

const budgetNow = (pools: PoolsFromFacts, nodes: ReadonlyMap<string, BudgetState>, pool: string): number =>
  pools.budget(
    pool,
    [...nodes.values()].filter(({ joined }) => joined).map(({ labels }) => labels),
  );

const holderOf = ({ silent, lease }: BudgetState): UnitHolder => ({ silent, lease });

/** Whether the node certainly counts against the pool. If several pools select it, it belongs to only one of them. */
function countsIn(pools: PoolsFromFacts, seen: BudgetState, pool: string): boolean {
  if (seen.lease !== undefined) return !seen.lease.free && seen.lease.pool === pool;
  if (!seen.joined || seen.skipped || !wasDown(seen)) return false;
  const selecting = pools.selecting(seen.labels);
  return pool === 'default' ? selecting.length === 0 : selecting.length === 1 && selecting[0] === pool;
}

/** A lease for a node that is already unavailable needs no unit. */
const wasDown = (seen: BudgetState): boolean => seen.silent || seen.out || seen.taken || !seen.restored;
const newSeen = (): BudgetState => ({
  joined: false,
  silent: false,
  out: false,
  taken: false,
  restored: true,
  skipped: false,
  labels: {},
  lease: undefined,
});

/** What a fact tells about its node on its own. */
const PLAIN: { readonly [T in Fact['type']]?: Partial<BudgetState> } = {
  'node.left': { joined: false, silent: false, out: false, taken: false },
  'node.unavailable': { out: true },
  'node.available': { out: false },
  'node.taken': { taken: true },
  'node.returned': { taken: false },
  'node.silent': { silent: true },
  'node.heard': { silent: false, skipped: false },
  'node.skipped': { skipped: true },
};

function see(nodes: Map<string, BudgetState>, fact: Fact): void {
  if (!fact.type.startsWith('node.') || !('node' in fact)) return;
  const seen = nodes.get(fact.node) ?? newSeen();
  nodes.set(fact.node, Object.assign(seen, PLAIN[fact.type]));
  if (fact.type === 'node.joined') {
    if (!seen.joined) Object.assign(seen, { out: false, taken: false });
    Object.assign(seen, { joined: true, silent: false, skipped: false, labels: fact.labels });
  }
  if (fact.type === 'node.changed') seen.labels = fact.labels;
  if (fact.type === 'node.reported' || fact.type === 'node.lease.settled') answer(seen, fact);
  if (isLeaseEnd(fact) && seen.lease?.id === fact.lease) seen.lease = undefined;
  if (fact.type === 'node.lease.granted') {
    const { lease: id, pool, free, kind } = fact;
    seen.lease = { id, pool, free, kind, open: true, unknown: false };
  }
}

function answer(seen: BudgetState, fact: FactOf<'node.reported' | 'node.lease.settled'>): void {
  const report = takenReport(fact);
  if (report !== undefined) seen.restored = fact.restored;
  if (seen.lease === undefined) return;
  if (fact.type === 'node.lease.settled' && fact.lease === seen.lease.id)
    Object.assign(seen.lease, { open: false, unknown: fact.because === 'unknown' });
  if (report?.lease === seen.lease.id) seen.lease.unknown = false;
}
