import { fragmentId, type Fact, type Fragment } from '#libs/contracts';
import { parsePool, selectorOf, selects } from '#libs/manifests';

type Labels = Readonly<Record<string, string>>;

/** The pools and their budgets, computed directly from the facts: the committed ones, and those in open rollouts. */
export class PoolsFromFacts {
  private readonly committed = new Map<string, Fragment>();
  private readonly carried = new Map<
    string,
    { readonly pools: readonly Fragment[]; readonly deleted: readonly string[] }
  >();
  private readonly started = new Set<string>();
  /** All versions of each pool. */
  private readonly ever = new Map<string, readonly Fragment[]>();

  evolve(fact: Fact): void {
    switch (fact.type) {
      case 'config.accepted':
        this.carried.set(fact.change, {
          pools: fact.apply.filter(({ kind }) => kind === 'Pool'),
          deleted: fact.delete.map(fragmentId),
        });
        return;
      case 'rollout.started':
        this.started.add(fact.change);
        return this.remember(fact.change);
      case 'config.committed':
        this.started.delete(fact.change);
        return this.commit(fact.change);
      case 'config.ended':
      case 'rollout.superseded':
        return void this.started.delete(fact.change);
      default:
        return;
    }
  }

  /** The pools that select a node with these labels now. Which of them the node belongs to is not decided here. */
  selecting(labels: Labels): readonly string[] {
    return [...this.inForce.values()].filter((pool) => selects(selectorOf(pool), labels)).map(({ name }) => name);
  }

  /** The pools with the changes of the open rollouts. */
  private get inForce(): ReadonlyMap<string, Fragment> {
    const pools = new Map(this.committed);
    for (const change of this.started) {
      const { pools: brought = [], deleted = [] } = this.carried.get(change) ?? {};
      for (const id of deleted) if (id.startsWith('Pool/')) pools.delete(id.slice(5));
      for (const pool of brought) pools.set(pool.name, pool);
    }
    return pools;
  }

  /** The maximum number of unavailable nodes. A percentage is applied to all nodes that the pool selects. */
  budget(pool: string, all: readonly Labels[]): number {
    const forms = [this.committed.get(pool), this.inForce.get(pool)].filter((form) => form !== undefined);
    if (forms.length === 0) return 1;
    const selector = selectorOf(this.inForce.get(pool) ?? (forms[0] as Fragment));
    const members = all.filter((labels) => selects(selector, labels)).length;
    return Math.min(...forms.map((fragment) => budgetOf(fragment, members)));
  }

  /** The largest budget that it ever allowed for this many nodes. */
  most(pool: string, nodes: number): number {
    return Math.max(1, ...(this.ever.get(pool) ?? []).map((fragment) => budgetOf(fragment, nodes)));
  }

  private commit(change: string): void {
    const { pools, deleted } = this.carried.get(change) ?? { pools: [], deleted: [] };
    for (const id of deleted) if (id.startsWith('Pool/')) this.committed.delete(id.slice(5));
    for (const pool of pools) this.committed.set(pool.name, pool);
  }

  private remember(change: string): void {
    for (const pool of this.carried.get(change)?.pools ?? [])
      this.ever.set(pool.name, [...(this.ever.get(pool.name) ?? []), pool]);
  }
}

function budgetOf(fragment: Fragment, members: number): number {
  const { maxUnavailable } = parsePool(fragment);
  return maxUnavailable.kind === 'count'
    ? maxUnavailable.n
    : Math.max(1, Math.floor((maxUnavailable.p * members) / 100));
}
