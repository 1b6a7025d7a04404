import { SortedSet, Table, UndoLog } from '#libs/engine';
import type { PausedObject, WrittenDrain } from '#libs/manifests';

/** The drain of one lease, until its node is given back. */
export interface Drain {
  readonly node: string;
  readonly pool: string;
  readonly change: string;
  readonly lease: string;
  /** `stopped`: the lease or the drain ended before the node was drained. */
  readonly phase: 'draining' | 'drained' | 'stopped' | 'uncordoning' | 'uncordoned';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
  readonly since: string;
  /** How long the drain may take, counted from `termsMs`. */
  readonly drainMs: number;
  /** The drain settings of the pool when the lease was granted or last amended. */
  readonly how: WrittenDrain;
  /** What is paused for the lease: what its settings name now, and what they named before. */
  readonly pauses: readonly PausedObject[];
  /** When this copy read these settings, monotonic. */
  readonly termsMs: number;
  /** How often the drain settings have changed since the lease was granted. */
  readonly amended: number;
  /** The node reboots after the drain. */
  readonly reboots: boolean;
  readonly cordoned: boolean;
  /** How many pods had to go when the node was cordoned. */
  readonly pods: number;
  /** The last recorded block. */
  readonly blocked: BlockRecord | undefined;
}

/** A recorded block. A budget counts as one block, no matter which of its pods are refused. */
export interface BlockRecord {
  readonly by: string;
  readonly since: string;
}

/** Identifies a block by what its fact says. */
export const blockerOf = (reason: string, budget: string): string => (budget === '' ? reason : `budget ${budget}`);

/** Why pods cannot be evicted now. */
export interface Refusal {
  readonly reason: string;
  /** The PodDisruptionBudget that refuses, and how many evictions it allows; undefined if another rule refuses. */
  readonly budget: { readonly name: string; readonly allowed: number } | undefined;
}

/** What blocks a drain, and the first few pods that it blocks. */
export interface Block extends Refusal {
  readonly pods: readonly string[];
  readonly since: string;
}

/** The progress of a drain as this copy sees it, for the view. It is not a fact, because it changes with every pod. */
export interface Progress {
  readonly lease: string;
  readonly total: number;
  readonly evicted: number;
  readonly waitingFor: readonly string[];
  /** What blocks it now. */
  readonly block: Block | undefined;
}

/** The drain service's fold: the leases with a drain, by node. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly drains = new Table<string, Drain>(this.undo);
  /** Nodes that are being drained, stay cordoned for their lease, or must be given back. */
  readonly open = new SortedSet(this.undo);
  /** Memory of this copy, by node; not part of the fold. */
  readonly progress = new Map<string, Progress>();
  strategy: Strategy = 'none';
}

/** The drain of a node, as long as it is under way for this lease. */
export function drainUnderWay(state: State, node: string, lease: string): Drain | undefined {
  const drain = state.drains.get(node);
  return drain?.lease === lease && drain.phase === 'draining' ? drain : undefined;
}

/**
 * How nodes are drained. `none`: there is nothing to drain, so a drain ends at once. `external`: another tool watches
 * for leases with a `drain` action and sends ops.node.drained. `kubernetes`: the Node is cordoned and its pods are
 * evicted.
 */
export type Strategy = 'none' | 'external' | 'kubernetes';
