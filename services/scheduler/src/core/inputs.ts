import type { Action, Fragment, NodeReport } from '#libs/contracts';
import type { Need } from '#libs/engine';

/** What the scheduler receives besides the ledger. */
export type Input =
  | { readonly type: 'report'; readonly sequence: number; readonly report: NodeReport }
  | { readonly type: 'request'; readonly request: Request };

/** Requests of people and tools under `ops.`. */
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
 * The actions that a node needs for a lease, planned from the contents of both configs, outside the core.
 */
export interface PlanNeed extends Need {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly from: string;
  readonly to: string;
  /** How the node differs from `from`, as it reported. Every lease corrects that. */
  readonly drift: readonly string[];
  /** The `DisruptionPolicy` fragments that apply to this lease. */
  readonly policies: readonly Fragment[];
}
export type Plan = (
  | { readonly ok: true; readonly actions: readonly Action[] }
  /** The new config cannot be found. */
  | { readonly ok: false; readonly reason: string }
) & {
  /** Set if a config is missing for this node. It may exist for other nodes, so the result is not valid for them. */
  readonly only?: string;
};
