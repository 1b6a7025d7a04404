import { nodeToken } from '#libs/contracts';
import type { Bus, LedgerService } from '#libs/nats';
import type { Kube } from '#libs/kube';
import { monotonicMs, wallTime, type Logger } from '#libs/process';
import {
  Drains,
  drainUnderWay,
  noteProgress,
  pausersOf,
  type Drain,
  type Input,
  type Progress,
  type State,
} from '../../core/index.js';
import { NodeDrain, type DrainerParts } from './node-drain.js';

/** At most one message per second for each node. */
const PROGRESS_MS = 1_000;

/** The strategy `kubernetes`: while this copy leads, one NodeDrain for each node that must be drained or given back. */
export class Drainer {
  private readonly drains = new Drains((drain) => new NodeDrain(this.parts, drain).start());
  private readonly published = new Map<string, { readonly text: string; readonly atMs: number }>();
  private readonly unfollow: () => void;
  private unwatch: (() => void) | undefined;
  private readonly parts: DrainerParts;

  constructor(
    private readonly ledger: LedgerService<State, Input>,
    private readonly bus: Bus,
    private readonly kube: Kube,
    logger: Logger,
    self: string | undefined,
  ) {
    this.parts = {
      kube,
      logger,
      self,
      drainOf: (node) => ledger.query((state) => state.drains.get(node)),
      pausers: () => ledger.query(pausersOf),
      say: async (sight) => void (await ledger.submit({ type: 'sight', sight })),
      show: (node, progress) => this.show(node, progress),
    };
    this.unfollow = ledger.follow((state) => this.follow(state));
  }

  /** Called by Nest. */
  async onModuleDestroy(): Promise<void> {
    this.unfollow();
    this.follow(undefined);
    await this.kube.close();
  }

  /** Starts and stops drains so that they match the fold. */
  private follow(state: State | undefined): void {
    this.drains.follow(state);
    for (const node of this.published.keys()) if (!this.drains.running.has(node)) this.published.delete(node);
    this.watchBudgets();
  }

  /** Budgets do not matter while nothing is drained. */
  private watchBudgets(): void {
    if (this.drains.running.size > 0)
      this.unwatch ??= this.kube.onFreed((budget) => this.drains.freed([budget]), this.parts.logger);
    else {
      this.unwatch?.();
      this.unwatch = undefined;
    }
  }

  private show(node: string, progress: Progress): void {
    this.ledger.observe((state) => {
      const drain = drainUnderWay(state, node, progress.lease);
      if (drain !== undefined) this.publish(drain, progress);
      return noteProgress(state, node, progress);
    });
  }

  /** For logs only. The view has the same content. */
  private publish({ node, pool, change, lease }: Drain, { total, evicted, waitingFor }: Progress): void {
    const body = { node, pool, change, lease, total, evicted, waitingFor };
    const text = JSON.stringify(body);
    const before = this.published.get(node);
    const nowMs = monotonicMs();
    if (before !== undefined && (before.text === text || nowMs - before.atMs < PROGRESS_MS)) return;
    this.published.set(node, { text, atMs: nowMs });
    this.bus.broadcast(`node.drain.progress.${nodeToken(node)}`, JSON.stringify({ at: wallTime(), ...body }));
  }
}
