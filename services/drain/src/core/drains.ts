import { asker, type Effects, type Program } from '#libs/engine';
import type { DrainPod } from './eviction-plan.js';
import type { NodeCordon } from './cordon.js';
import { NodeReconciler, type ReconcileEffect } from './node-reconciler.js';
import type { Drain, State } from './state.js';

/** The other effects that the drain of one node needs. */
interface PacePort {
  /** Waits until something may have changed, but not longer than this. */
  wait(args: { readonly forMs: number }): void;
  /** The same, for a time that grows with the number of tries, with jitter. */
  'back-off'(args: { readonly tries: number; readonly leastMs: number; readonly mostMs: number }): void;
  /** Whether the API server refused, and will refuse again until a person acts. */
  'note-failure'(args: { readonly error: Error; readonly failures: number }): boolean;
}
export type DrainEffect<N extends NodeCordon, P extends DrainPod> = ReconcileEffect<N, P> | Effects<PacePort>;

const ask = asker<PacePort>();

/** Reconciles one node until it is stopped. */
function* drainNode<N extends NodeCordon, P extends DrainPod>(
  reconciler: NodeReconciler<N, P>,
): Program<DrainEffect<N, P>, never> {
  for (let failures = 0; ;) {
    try {
      const pauseMs = yield* reconciler.reconcile();
      failures = 0;
      if (pauseMs > 0) yield* ask({ do: 'wait', forMs: pauseMs });
    } catch (error) {
      const { message } = error as Error;
      const refused = yield* ask({ do: 'note-failure', error: error as Error, failures });
      try {
        yield* reconciler.failed(failures, message, refused);
      } catch {
        // If this cannot be recorded either, the next try reports the same error.
      }
      yield* ask({ do: 'back-off', tries: failures++, leastMs: 250, mostMs: 15_000 });
    }
  }
}

/** Pods come and go in bursts: after a nudge a world waits this long before it looks. */
export const BURST_MS = 30;

/** The running drain of one node. The program is the same everywhere; each world carries out its effects. */
export abstract class RunningDrain<N extends NodeCordon, P extends DrainPod> {
  readonly node: string;
  readonly lease: string;
  protected stopped = false;
  private readonly reconciler: NodeReconciler<N, P>;

  /** `self`: the pod that this process runs in, as namespace/name; undefined outside Kubernetes. */
  constructor({ node, lease, phase }: Pick<Drain, 'node' | 'lease' | 'phase'>, self: string | undefined) {
    [this.node, this.lease] = [node, lease];
    this.reconciler = new NodeReconciler(node, lease, phase, self);
  }

  /** Call this when the fold shows another phase or other drain settings. */
  move(drain: Pick<Drain, 'phase' | 'amended'>): void {
    if (this.reconciler.move(drain)) this.nudge();
  }

  /** Call this when budgets allow evictions again: pods that they blocked are tried again at once. */
  freed(budgets: readonly string[]): void {
    if (budgets.filter((budget) => this.reconciler.freed(budget)).length > 0) this.nudge();
  }

  stop(): void {
    this.stopped = true;
  }

  /** Something may have changed: ends the current wait, or the next one, soon. */
  abstract nudge(): void;

  protected program(): Program<DrainEffect<N, P>, never> {
    return drainNode(this.reconciler);
  }
}

type Startable = Pick<RunningDrain<never, never>, 'lease' | 'move' | 'stop' | 'freed'>;

/** The running drains of the leader: one for each node that must be drained or given back. */
export class Drains<D extends Startable> {
  readonly running = new Map<string, D>();

  constructor(private readonly start: (drain: Drain) => D) {}

  freed(budgets: readonly string[]): void {
    for (const running of this.running.values()) running.freed(budgets);
  }

  /** Starts and stops drains so that they match the fold; without a fold, stops all. */
  follow(state: State | undefined): void {
    for (const [node, running] of this.running) {
      if (state?.open.has(node) === true && state.drains.get(node)?.lease === running.lease) continue;
      running.stop();
      this.running.delete(node);
    }
    for (const node of state?.open ?? []) {
      const drain = state?.drains.get(node);
      if (drain === undefined) continue;
      const running = this.running.get(node);
      if (running === undefined) this.running.set(node, this.start(drain));
      else running.move(drain);
    }
  }
}
