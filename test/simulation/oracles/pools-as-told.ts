import { fragmentId, type Fact, type Fragment } from '#libs/contracts';
import { parsePool, selectorOf, selects } from '#libs/manifests';

type Labels = Readonly<Record<string, string>>;

/** The pools and their budgets, plainly from the facts: what is committed, and what open rollouts carry. */
export class PoolsAsTold {
  private readonly committed = new Map<string, Fragment>();
  private readonly carried = new Map<
    string,
    { readonly pools: readonly Fragment[]; readonly deleted: readonly string[] }
  >();
  private readonly started = new Set<string>();
  /** Every form that each pool ever had. */
  private readonly ever = new Map<string, readonly Fragment[]>();

  hear(fact: Fact): void {
    switch (fact.type) {
      case 'config.accepted':
        this.carried.set(fact.change, {
          pools: fact.apply.filter(({ kind }) => kind === 'Pool'),
          deleted: fact.delete.map(fragmentId),
        });
        return;
      case 'rollout.started':
        return void this.started.add(fact.change);
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

  /** The committed pools that select a node with these labels. Which of several it is in is not asked here. */
  selecting(labels: Labels): readonly string[] {
    return [...this.committed.values()].filter((pool) => selects(selectorOf(pool), labels)).map(({ name }) => name);
  }

  /** The most that may be unavailable; of a percentage as if everybody whom the pool selects were in it. */
  budget(pool: string, all: readonly Labels[]): number {
    const own = this.committed.get(pool);
    if (own === undefined) return 1;
    const members = all.filter((labels) => selects(selectorOf(own), labels)).length;
    const open = [...this.started].flatMap(
      (change) => this.carried.get(change)?.pools.filter(({ name }) => name === pool) ?? [],
    );
    return Math.min(...[own, ...open].map((fragment) => budgetOf(fragment, members)));
  }

  /** The most that it ever allowed, of so many nodes. */
  most(pool: string, nodes: number): number {
    return Math.max(1, ...(this.ever.get(pool) ?? []).map((fragment) => budgetOf(fragment, nodes)));
  }

  private commit(change: string): void {
    const { pools, deleted } = this.carried.get(change) ?? { pools: [], deleted: [] };
    for (const id of deleted) if (id.startsWith('Pool/')) this.committed.delete(id.slice(5));
    for (const pool of pools) {
      this.committed.set(pool.name, pool);
      this.ever.set(pool.name, [...(this.ever.get(pool.name) ?? []), pool]);
    }
  }
}

function budgetOf(fragment: Fragment, members: number): number {
  const { maxUnavailable } = parsePool(fragment);
  return maxUnavailable.kind === 'count'
    ? maxUnavailable.n
    : Math.max(1, Math.floor((maxUnavailable.p * members) / 100));
}
