import { SortedSet, Table, UndoLog } from '#libs/kernel';

/** A lease that drains its node, or gives it back. */
export interface Drain {
  readonly node: string;
  readonly pool: string;
  readonly change: string;
  readonly lease: string;
  readonly phase: 'draining' | 'drained' | 'uncordoning' | 'uncordoned';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
  readonly since: string;
}

/** The drain service's fold: the leases with a drain, by node. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly drains = new Table<string, Drain>(this.undo);
  /** Nodes whose drain this service has something to do for. */
  readonly open = new SortedSet(this.undo);
  strategy: Strategy = 'none';
}

/**
 * How a node is drained. `none`: there is nothing to drain, so it is drained at once. `external`: another tool hears the
 * lease with its `drain` action, and answers by ops.node.drained.
 */
export type Strategy = 'none' | 'external';
export const STRATEGIES: readonly Strategy[] = ['none', 'external'];
