import { isLeaseEnd, takenReport, type Fact, type FactOf, type LeaseKind } from '#libs/contracts';
import { mayRollBackBeyond, type UnitHolder } from '#libs/testing';

interface Observation {
  joined: boolean;
  silent: boolean;
  /** Out of service in Kubernetes. */
  out: boolean;
  /** By another tool. */
  taken: boolean;
  skipped: boolean;
  /** The rollout in which it was skipped. A live node counts again when that has ended. */
  skippedFor: string;
  restored: boolean;
  role: string;
  /** The pool of the lease that takes a unit. */
  lease: string;
  leaseId: string;
  leaseKind: LeaseKind;
  /** The lease has no outcome yet. */
  open: boolean;
  /** The lease ended as unknown, and no report has named it since. */
  unknown: boolean;
}

/**
 * An independent count of the unavailable nodes: computed from the facts alone, without the scheduler's indexes. It
 * knows only the pools of the properties: `a` and `b`, by role.
 */
export class Unavailability {
  readonly overdrafts: string[] = [];
  private readonly nodes = new Map<string, Observation>();
  private readonly committed = new Map<string, number | string>();
  private readonly carried = new Map<string, { readonly budget: number | string; started: boolean }>();

  evolve(fact: Fact): void {
    switch (fact.type) {
      case 'config.accepted':
        for (const { kind, name, spec } of fact.apply)
          if (kind === 'Pool')
            this.carried.set(`${fact.change}/${name}`, {
              budget: (spec as { maxUnavailable: number | string }).maxUnavailable,
              started: false,
            });
        return;
      case 'rollout.started':
        for (const [key, carried] of this.carried) if (key.startsWith(`${fact.change}/`)) carried.started = true;
        return;
      case 'config.committed':
        for (const [key, { budget }] of this.carried)
          if (key.startsWith(`${fact.change}/`)) this.committed.set(key.split('/')[1] ?? '', budget);
        this.over(fact.change);
        return this.forget(fact.change);
      case 'config.ended':
        return this.forget(fact.change);
      case 'rollout.reverted':
      case 'rollout.superseded':
        return this.over(fact.change);
      case 'node.joined':
      case 'node.changed': {
        const before = this.of(fact.node);
        this.nodes.set(fact.node, {
          ...before,
          joined: true,
          role: fact.labels['role'] ?? '',
          ...(before.joined ? {} : { silent: false, out: false, taken: false, skipped: false }),
        });
        return;
      }
      case 'node.left':
        return this.patch(fact.node, { joined: false, silent: false, out: false, taken: false });
      case 'node.silent':
        return this.patch(fact.node, { silent: true });
      case 'node.heard':
        return this.patch(fact.node, { silent: false, skipped: false });
      case 'node.taken': {
        const down = this.downIn(fact.pool);
        if (!isDown(this.of(fact.node)) && down.length + 1 > this.budget(fact.pool))
          this.overdrafts.push(`${fact.node} is taken in ${fact.pool} while ${down.join(', ')} are down`);
        return this.patch(fact.node, { taken: true });
      }
      case 'node.returned':
        return this.patch(fact.node, { taken: false });
      case 'node.unavailable':
        return this.patch(fact.node, { out: true });
      case 'node.available':
        return this.patch(fact.node, { out: false });
      case 'node.skipped':
        return this.patch(fact.node, { skipped: true, skippedFor: fact.change });
      case 'node.reported':
      case 'node.lease.settled':
        this.takeReport(fact);
        if (isLeaseEnd(fact)) this.released(fact);
        return;
      case 'node.lease.granted':
        return this.granted(fact);
      case 'node.lease.released':
        return this.released(fact);
      default:
        return;
    }
  }

  private takeReport(fact: FactOf<'node.reported' | 'node.lease.settled'>): void {
    const report = takenReport(fact);
    if (report !== undefined) this.patch(fact.node, { restored: fact.restored });
    const { leaseId } = this.of(fact.node);
    if (fact.type === 'node.lease.settled' && fact.lease === leaseId)
      this.patch(fact.node, { open: false, unknown: fact.because === 'unknown' });
    if (report?.lease === leaseId) this.patch(fact.node, { unknown: false });
  }

  private granted({ node, pool, lease, free, kind }: FactOf<'node.lease.granted'>): void {
    const before = this.of(node);
    if (before.taken) this.overdrafts.push(`${node} gets ${lease}, and is another tool's`);
    if (before.leaseId !== '') this.overdrafts.push(`${node} has ${before.leaseId} and gets ${lease}`);
    const down = this.downIn(pool);
    const wasDown = isDown(before);
    const takesUnit = !free && !wasDown;
    const holders = down.map((name) => holderOf(this.of(name)));
    if (takesUnit && down.length + 1 > this.budget(pool) && !mayRollBackBeyond(kind, holders, this.budget(pool)))
      this.overdrafts.push(`${node} gets ${lease} in ${pool} while ${down.join(', ')} are down`);
    const changing = [...this.nodes.values()].filter((seen) => seen.open && seen.lease === pool);
    if (!free && wasDown && changing.length + 1 > this.budget(pool))
      this.overdrafts.push(`${node}, which is down, gets ${lease} in ${pool} while ${changing.length} others change`);
    this.patch(node, { lease: free ? '' : pool, leaseId: lease, leaseKind: kind, open: true, unknown: false });
  }

  private released({ node, lease }: { readonly node: string; readonly lease: string }): void {
    if (this.of(node).leaseId === lease) this.patch(node, { lease: '', leaseId: '' });
    if (this.of(node).skippedFor === '' && !this.of(node).silent) this.patch(node, { skipped: false });
  }

  private downIn(pool: string): readonly string[] {
    return [...this.nodes]
      .filter(([, seen]) => isDown(seen) && (seen.lease === pool || seen.role === pool))
      .map(([name]) => name);
  }

  private budget(pool: string): number {
    const members = [...this.nodes.values()].filter((seen) => seen.joined && seen.role === pool).length;
    const all = [
      this.committed.get(pool) ?? 1,
      ...[...this.carried]
        .filter(([key, { started }]) => started && key.endsWith(`/${pool}`))
        .map(([, { budget }]) => budget),
    ];
    return Math.min(
      ...all.map((budget) =>
        typeof budget === 'number' ? budget : Math.max(1, Math.floor((Number.parseInt(budget, 10) * members) / 100)),
      ),
    );
  }

  private over(change: string): void {
    for (const [name, seen] of this.nodes)
      if (seen.skipped && seen.skippedFor === change && !seen.silent) this.patch(name, { skipped: false });
  }

  private forget(change: string): void {
    for (const key of [...this.carried.keys()]) if (key.startsWith(`${change}/`)) this.carried.delete(key);
  }

  private of(node: string): Observation {
    return (
      this.nodes.get(node) ?? {
        joined: false,
        silent: false,
        out: false,
        taken: false,
        skipped: false,
        skippedFor: '',
        restored: true,
        role: '',
        lease: '',
        leaseId: '',
        leaseKind: 'forward',
        open: false,
        unknown: false,
      }
    );
  }

  private patch(node: string, change: Partial<Observation>): void {
    this.nodes.set(node, { ...this.of(node), ...change });
  }
}

const isDown = (seen: Observation): boolean =>
  seen.lease !== '' || (seen.joined && !seen.skipped && (seen.silent || seen.out || seen.taken || !seen.restored));

const holderOf = ({ silent, lease, leaseKind: kind, unknown }: Observation): UnitHolder => ({
  silent,
  lease: lease === '' ? undefined : { kind, unknown },
});
