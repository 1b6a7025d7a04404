import type { Action, Reason } from '#libs/contracts';

/** What would happen to one node. */
export interface PlannedNode {
  readonly node: string;
  readonly pool: string;
  readonly from: string;
  readonly to: string;
  readonly actions: readonly Action[];
  readonly changed: readonly string[];
}

/** The answer of `ops.config.plan`, its pages joined; also what `-o json` prints. */
export interface PlanAnswer {
  readonly rejected: readonly Reason[];
  readonly warnings: readonly Reason[];
  readonly waitsFor: readonly string[];
  readonly nodes: readonly PlannedNode[];
  readonly pools: Readonly<Record<string, { readonly nodes: number; readonly budget: number }>>;
  readonly touched: number;
  readonly unchanged: number;
}

/** How actions read: `reload crio.service`, `drain, reboot`. */
export const actionText = (actions: readonly Action[]): string =>
  actions.map(({ kind, unit }) => (unit === undefined || unit === '' ? kind : `${kind} ${unit}`)).join(', ') || 'none';
