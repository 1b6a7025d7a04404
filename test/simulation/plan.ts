/** A run as data: what a seed makes of it, and what a shrunk failure leaves of that. */
export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  /** Of each service. */
  readonly copies: number;
  /** How long people and faults act. */
  readonly minutes: number;
  /** Who acts; with the numbers of what of it happens, or all of it. */
  readonly actors: ReadonlyMap<string, ReadonlySet<number> | undefined>;
  /** Waits out the longest distance between two tries several times, though everything came to rest. */
  readonly patient: boolean;
  /** Nodes are Kubernetes', which drains them. */
  readonly kubernetes: boolean;
}
