import type { Action, FailingProbe, Reason } from './facts.js';

/** The answer of `ops.config.plan`: what a change would do, node by node. */
export interface PlanAnswer {
  readonly rejected: readonly Reason[];
  readonly warnings: readonly Reason[];
  readonly waitsFor: readonly string[];
  /** What the change refers to and does not exist, as `Kind/name`: it would wait for that. Absent if it would not. */
  readonly needs?: readonly string[];
  /** Who refers to that; absent if the change would not wait. */
  readonly missing?: readonly Reason[];
  readonly nodes: readonly PlannedNode[];
  readonly pools: Readonly<Record<string, PlannedPool>>;
  /** How many of these nodes the change itself lets change at once, over all pools; absent if it sets no limit. */
  readonly maxUnavailable?: number;
  readonly touched: number;
  readonly unchanged: number;
}

/** How many nodes of a pool would change, and how many of them may change at once. */
export interface PlannedPool {
  readonly nodes: number;
  readonly budget: number;
  /** How many units of the budget no node holds now; absent if that is not known. */
  readonly free?: number;
}

/** What would happen to one node. */
export interface PlannedNode {
  readonly node: string;
  readonly pool: string;
  readonly from: string;
  readonly to: string;
  readonly actions: readonly Action[];
  readonly changed: readonly string[];
  /** The probes that fail on it now; absent if it is healthy. */
  readonly failingProbes?: readonly FailingProbe[];
  /** The drift that its lease corrects, as last reported: the first differences. Absent without drift. */
  readonly drift?: readonly string[];
  /** The drift that it refuses to correct, and why: the first differences. Absent without any. */
  readonly leavesDrift?: readonly string[];
  /** Whether its lease would overwrite something that somebody changed by hand; absent if not. */
  readonly overwritesDrift?: true;
  /** It does not change in the rollout, but after the commit, because the policies of the change release it. */
  readonly afterCommit?: true;
  /** Why it does not change now; absent if it does. */
  readonly deferred?: DeferredBecause;
}

/**
 * Why a node gets no config now. `refused`: it refuses to correct its drift, and nothing else would change.
 * `incompatible`: something in the committed config does not fit it already.
 */
export type DeferredBecause = 'silent' | 'taken' | 'drift' | 'unhealthy' | 'refused' | 'incompatible';
