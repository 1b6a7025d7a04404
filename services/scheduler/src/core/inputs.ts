import type { Action, Fragment, NodeReport } from '#libs/contracts';
import type { Need } from '#libs/engine';

/** What the scheduler receives besides the ledger. */
export type Input =
  | { readonly type: 'report'; readonly sequence: number; readonly report: NodeReport }
  | { readonly type: 'request'; readonly request: Request };

/** What people and tools ask it under `ops.`. */
export type Request =
  | { readonly op: 'rollout.list'; readonly cursor: string; readonly limit: number }
  | { readonly op: 'rollout.get'; readonly change: string; readonly cursor: string; readonly limit: number }
  | {
      readonly op: 'rollout.pause' | 'rollout.resume' | 'rollout.abort';
      readonly change: string;
      readonly by: string;
      readonly reason: string;
    }
  | { readonly op: 'node.why'; readonly node: string }
  | { readonly op: 'node.skip'; readonly node: string; readonly by: string; readonly reason: string }
  | { readonly op: 'pool.list'; readonly cursor: string; readonly limit: number }
  | { readonly op: 'pool.get'; readonly pool: string }
  | {
      readonly op: 'pool.take';
      readonly node: string;
      readonly pool?: string;
      readonly owner: string;
      readonly reason: string;
      readonly by: string;
      readonly forMs?: number;
    }
  | { readonly op: 'pool.give'; readonly node: string; readonly owner: string; readonly by: string };

/**
 * The actions that bring a node from what it has to what it should have: planned from the configs' content, outside the
 * core.
 */
export interface PlanNeed extends Need {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly from: string;
  readonly to: string;
  /** The `DisruptionPolicy` fragments in force for this lease. */
  readonly policies: readonly Fragment[];
}
export type Plan = (
  | { readonly ok: true; readonly actions: readonly Action[] }
  /** The config that it should have cannot be found. */
  | { readonly ok: false; readonly reason: string }
) & {
  /** Made without a config that is missing for this node, and perhaps for this node only: it says nothing of others. */
  readonly only?: string;
};
