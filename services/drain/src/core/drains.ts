import { asker, type Effects, type Program } from '#libs/engine';
import type { PodSeen } from './eviction-plan.js';
import type { NodeSeen } from './cordon.js';
import type { NodeReconciler, ReconcileEffect } from './node-reconciler.js';
import type { Drain, State } from './state.js';

/** What else the drain of one node asks of its world. */
interface PacePort {
  /** Until something may have changed, and at most so long. */
  wait(asked: { readonly forMs: number }): void;
  /** The same, for a time that grows with the tries, with jitter. */
  'back-off'(asked: { readonly tries: number; readonly leastMs: number; readonly mostMs: number }): void;
  /** Whether the API server answered, and it stays like that until somebody acts. */
  'note-failure'(asked: { readonly error: Error; readonly failures: number }): boolean;
}
export type DrainEffect<N extends NodeSeen, P extends PodSeen> = ReconcileEffect<N, P> | Effects<PacePort>;

const ask = asker<PacePort>();

/** Reconciles one node again and again, until its world stops it. */
export function* drainNode<N extends NodeSeen, P extends PodSeen>(
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
        // Why it could not be said is why it is tried again.
      }
      yield* ask({ do: 'back-off', tries: failures++, leastMs: 250, mostMs: 15_000 });
    }
  }
}

/** The drain of one node, as a world runs it. */
export interface RunningDrain {
  readonly lease: string;
  /** The fold says that it has come to another phase, or is to be drained in another way. */
  move(drain: Drain): void;
  stop(): void;
}

/** What a copy that leads has under way: one drain for each node that is drained or has to be given back. */
export class Drains<D extends RunningDrain> {
  readonly running = new Map<string, D>();

  constructor(private readonly start: (drain: Drain) => D) {}

  /** Brings what is under way in line with the fold; ends all of it where there is none. */
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
