import type { Fact } from '#libs/contracts';
import type { Surroundings } from './surroundings.js';

/** Another tool drains: it receives leases with `drain`, and reports with ops.node.drained until that is accepted. */
export class Outside {
  /** What it has cordoned: node → lease. */
  readonly cordoned = new Map<string, string>();
  private readonly over = new Set<string>();

  constructor(private readonly world: Surroundings) {}

  onFact(fact: Fact): void {
    if (fact.type === 'node.lease.granted' && fact.phase === 'draining') this.drain(fact.node, fact.lease);
    if (fact.type === 'node.lease.settled') this.over.add(fact.lease);
    if (fact.type === 'node.lease.uncordoning' && this.cordoned.get(fact.node) === fact.lease)
      this.cordoned.delete(fact.node);
  }

  private drain(node: string, lease: string): void {
    const { world } = this;
    const answer = (): void => {
      if (this.cordoned.get(node) !== lease) return;
      world.ask('drain', { op: 'drained', node, lease, evicted: 3, by: 'tool' }, (taken) => {
        if (taken === undefined) world.clock.after(5_000, answer);
      });
    };
    world.clock.after(world.chance.next() * 20_000, () => {
      if (this.over.has(lease)) return;
      this.cordoned.set(node, lease);
      answer();
    });
  }
}
