import type { Action, Reason } from './facts.js';

/** The answer of `ops.config.plan`: what a change would do, node by node. */
export interface PlanAnswer {
  readonly rejected: readonly Reason[];
  readonly warnings: readonly Reason[];
  readonly waitsFor: readonly string[];
  readonly nodes: readonly PlannedNode[];
  readonly pools: Readonly<Record<string, { readonly nodes: number; readonly budget: number }>>;
  readonly touched: number;
  readonly unchanged: number;
}

/** What would happen to one node. */
export interface PlannedNode {
  readonly node: string;
  readonly pool: string;
  readonly from: string;
  readonly to: string;
  readonly actions: readonly Action[];
  readonly changed: readonly string[];
}
