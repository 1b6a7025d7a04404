import type { Target, Timing } from '../../../services/applier/src/shell/targets/index.js';

/** What an inventory lists now. */
export interface Listing {
  readonly targets: readonly Target[];
  /** What it lists, and cannot be served. */
  readonly problems?: readonly InventoryProblem[];
  /** Every node that exists, with those that cannot be served. Only if its leaves are known. */
  readonly nodes?: ReadonlyMap<string, ExistingNode>;
}

export interface InventoryProblem {
  /** As people find it, such as `pod sdewan/cnf-0`. */
  readonly object: string;
  readonly reason: string;
  /** What to do about it. */
  readonly todo: string;
}

export interface ExistingNode {
  /** Once it is deleted, another one may get its name soon, which is then the same node. */
  readonly isReplaced: boolean;
  /** The target goes on without its object, which is only how to reach it. */
  readonly outlives?: boolean;
}

/** Where the targets of an applier are listed. */
export interface Inventory {
  /**
   * Copies with the same name share its targets. Rejects while it is unknown, for example because an API server does
   * not answer. Throws UsageError if the inventory can never be used.
   */
  name(): Promise<string>;
  /**
   * Calls back with everything as soon as it is known, and again whenever it may have changed. While it cannot be read,
   * the last good state is kept, and the log says why. Call this after `name`. Returns a function that stops it.
   */
  start(timing: Timing, onChange: (listing: Listing) => void): () => void;
  /** How nodes leave. Without it, a node that is not listed any more becomes silent, and a person removes it. */
  readonly leaving?: Leaving;
  close?(): Promise<void>;
}

/** For inventories in which deleting an object means that its node has left the fleet. */
export interface Leaving {
  /** Whether the node was listed by this inventory once, according to its labels. */
  isOurs(labels: Readonly<Record<string, string>>): boolean;
  /** Rejects if the API server has other data than before, so that what is missing there was not deleted. */
  confirm(): Promise<void>;
  /** Whether its object is really deleted, and not only selected no longer. Rejects if that is unknown now. */
  isDeleted(node: string): Promise<boolean>;
  /** Whether a target may outlive its object, if it is not known what that was: it was deleted while no copy ran. */
  readonly mayOutlive: boolean;
  /** For people. */
  readonly reason: string;
}

/** Rejects if this is not the cluster with this id any more: it was built again, or restored without its data. */
export async function confirmSame(cluster: { clusterId(): Promise<string> }, id: string): Promise<void> {
  if ((await cluster.clusterId()) !== id)
    throw new Error('the API server belongs to another cluster than before, so nothing is known about its objects');
}

/** The label of nodes that says which inventory has listed them. */
export const INVENTORY_LABEL = 'sluice.dev/inventory';
/** The namespace of the object that a node was made from. */
export const NAMESPACE_LABEL = 'sluice.dev/namespace';
