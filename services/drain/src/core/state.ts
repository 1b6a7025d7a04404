import { SortedSet, Table, UndoLog } from '#libs/engine';
import type { WrittenDrain } from '#libs/manifests';

/** A lease that drains its node, or gives it back. */
export interface Drain {
  readonly node: string;
  readonly pool: string;
  readonly change: string;
  readonly lease: string;
  /** `stopped`: it ended, or was given up, before the node was drained. */
  readonly phase: 'draining' | 'drained' | 'stopped' | 'uncordoning' | 'uncordoned';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
  readonly since: string;
  /** The scheduler's patience, from `termsMs` on. */
  readonly drainMs: number;
  /** As the pool said when the lease was granted, or amended last. */
  readonly how: WrittenDrain;
  /** When this copy read what the pool says, monotonic. */
  readonly termsMs: number;
  /** So many times the pool was given other words since the lease was granted. */
  readonly amended: number;
  /** The node goes down whole afterwards. */
  readonly reboots: boolean;
  readonly cordoned: boolean;
  /** How many had to go when it was cordoned. */
  readonly pods: number;
  /** What holds it up, as it was said last; empty if nothing was. */
  readonly blockedBy: string;
  /** Since when, as it was said. */
  readonly blockedSince: string;
}

/** How far a drain is: what a copy saw itself, and shows in the view. It is no fact, for it changes with every pod. */
export interface Progress {
  readonly lease: string;
  readonly total: number;
  readonly evicted: number;
  readonly waitingFor: readonly string[];
  /** What holds it up now; empty if nothing does. */
  readonly reason: string;
  readonly budget: string;
  readonly allowed: number;
  readonly blocked: readonly string[];
  readonly blockedSince: string;
}

/** The drain service's fold: the leases with a drain, by node. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly drains = new Table<string, Drain>(this.undo);
  /** Nodes that are being drained, are held for their lease, or have to be given back. */
  readonly open = new SortedSet(this.undo);
  /** This copy's own memory, by node. */
  readonly progress = new Map<string, Progress>();
  strategy: Strategy = 'none';
}

/**
 * How a node is drained. `none`: there is nothing to drain, so it is drained at once. `external`: another tool hears
 * the lease with its `drain` action, and answers by ops.node.drained. `kubernetes`: its Node is cordoned, and its pods
 * are evicted.
 */
export type Strategy = 'none' | 'external' | 'kubernetes';
