import type { Action, Fragment, NodeReport } from '#libs/contracts';
import type { Need } from '#libs/engine';
import type { RequestOf } from '#libs/manifests';

/** What the scheduler receives besides the ledger. */
export type Input =
  | { readonly type: 'report'; readonly sequence: number; readonly report: NodeReport }
  | { readonly type: 'request'; readonly request: Request };

/** What people and tools may ask the scheduler. */
export const REQUESTS = {
  'rollout.list': 'ops.rollout.list',
  'rollout.get': 'ops.rollout.get',
  'rollout.pause': 'ops.rollout.pause',
  'rollout.resume': 'ops.rollout.resume',
  'rollout.abort': 'ops.rollout.abort',
  'node.why': 'ops.node.why',
  'node.skip': 'ops.node.skip',
  'pool.list': 'ops.pool.list',
  'pool.get': 'ops.pool.get',
  'pool.take': 'ops.pool.take',
  'pool.give': 'ops.pool.give',
} as const;
export type Request = RequestOf<typeof REQUESTS>;

/** The actions that a node needs for a lease, planned from the contents of both configs, outside the core. */
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
/** Asks where REPORTS ends. */
export interface EndNeed extends Need {
  /** When it is asked, monotonic. */
  readonly atMs: number;
}
/** Where REPORTS ended at that time, or later. */
export interface StreamEnd {
  readonly last: number;
  readonly atMs: number;
}
/**
 * How far this copy has read REPORTS. After an outage, reports may be waiting there, or on their way, that were sent in
 * time. So no lease ends as unknown before they are read.
 */
export interface Reading {
  /** The last report that was processed. */
  readonly upTo: number;
  /** Where REPORTS ended when this copy last asked; undefined if it never did. */
  readonly end: StreamEnd | undefined;
}

export type SchedulerNeed = PlanNeed | EndNeed;
export type GatherResult = Plan | StreamEnd;

export type Plan = (
  | { readonly ok: true; readonly actions: readonly Action[] }
  /** The new config cannot be found. */
  | { readonly ok: false; readonly reason: string }
) & {
  /** Set if a config is missing for this node. It may exist for other nodes, so the result is not valid for them. */
  readonly only?: string;
};
