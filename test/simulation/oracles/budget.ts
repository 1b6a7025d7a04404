import { fragmentId, type Fragment } from '#libs/contracts';
import { parsePool } from '#libs/manifests';
import { Violation, type Oracle } from '../world.js';

/**
 * I1, twice. From the ledger: at each grant that takes a unit, the leases of the pool that are not released are at most
 * its budget. From the machines: as many are in the middle of a change at once as the largest budget ever allowed.
 */
export function budget(): Oracle {
  const pools = new Map<string, Fragment>();
  const carried = new Map<string, readonly Fragment[]>();
  const removed = new Map<string, readonly string[]>();
  const started = new Set<string>();
  const largest = new Map<string, number>();
  const leases = new Map<string, { readonly node: string; readonly pool: string; readonly counts: boolean }>();
  const down = new Set<string>();
  const working = new Map<string, string>();
  const max = (fragment: Fragment | undefined): number => {
    if (fragment === undefined) return 1;
    const { maxUnavailable } = parsePool(fragment);
    return maxUnavailable.kind === 'count' ? maxUnavailable.n : Number.MAX_SAFE_INTEGER;
  };
  const budgetOf = (pool: string): number => {
    let now = max(pools.get(pool));
    if (!pools.has(pool)) return now;
    for (const change of started) for (const fragment of carried.get(change) ?? []) if (fragment.name === pool) now = Math.min(now, max(fragment));
    return now;
  };
  return {
    name: 'I1 budget',
    onFact(_world, fact) {
      switch (fact.type) {
        case 'config.accepted':
          carried.set(fact.change, fact.apply.filter(({ kind }) => kind === 'Pool'));
          removed.set(fact.change, fact.delete.filter(({ kind }) => kind === 'Pool').map(fragmentId));
          return;
        case 'rollout.started':
          return void started.add(fact.change);
        case 'config.committed':
          started.delete(fact.change);
          for (const id of removed.get(fact.change) ?? []) pools.delete(id.slice(5));
          for (const fragment of carried.get(fact.change) ?? []) {
            pools.set(fragment.name, fragment);
            largest.set(fragment.name, Math.max(largest.get(fragment.name) ?? 1, max(fragment)));
          }
          return;
        case 'config.ended':
        case 'rollout.superseded':
          return void started.delete(fact.change);
        case 'node.silent':
          return void down.add(fact.node);
        case 'node.heard':
          return void down.delete(fact.node);
        case 'node.reported':
          if (fact.restored) down.delete(fact.node);
          else down.add(fact.node);
          return;
        case 'node.lease.released':
          return void leases.delete(fact.lease);
        case 'node.lease.granted': {
          const counts = !fact.free && !down.has(fact.node);
          leases.set(fact.lease, { node: fact.node, pool: fact.pool, counts });
          const taken = [...leases.values()].filter((lease) => lease.pool === fact.pool && lease.counts).length;
          if (counts && taken > budgetOf(fact.pool)) throw new Violation(`${taken} leases in pool ${fact.pool}, whose budget is ${budgetOf(fact.pool)}`);
          return;
        }
        default:
          return;
      }
    },
    onJournal(world, node, journal) {
      const lease = journal.work?.lease;
      if (lease === undefined) return void working.delete(node.name);
      if (working.get(node.name) === lease) return;
      const granted = leases.get(lease);
      working.set(node.name, lease);
      if (granted === undefined || !granted.counts) return;
      const together = [...working.entries()].filter(([name, id]) => leases.get(id)?.pool === granted.pool && leases.get(id)?.counts === true && !world.excused.has(name));
      const most = Math.max(1, largest.get(granted.pool) ?? 1);
      if (together.length > most) throw new Violation(`${together.map(([name]) => name).join(', ')} of pool ${granted.pool} change at once, ${most} may`);
    },
  };
}
