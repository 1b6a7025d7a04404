/** What the bench sends to the process of the appliers. */
export interface FleetOptions {
  readonly urls: readonly string[];
  readonly nodes: number;
  readonly connections: number;
  /** 0: no heartbeats. */
  readonly heartbeatMs: number;
  /** Whether the nodes announce themselves. Nothing reads that in the floor. */
  readonly announce: boolean;
}

export type ToFleet =
  | { readonly do: 'start'; readonly options: FleetOptions }
  /** Discards all measurements so far. */
  | { readonly do: 'reset' }
  | { readonly do: 'figures' };

/** What the appliers did since the last reset. */
export interface FleetFigures {
  readonly applied: number;
  /**
   * Milliseconds from the report of one node to the start of the next applier, in order. Only useful with a budget of
   * 1.
   */
  readonly handoffsMs: readonly number[];
  readonly refused: number;
  readonly repeated: number;
}

export type FromFleet =
  | { readonly type: 'started' }
  | { readonly type: 'figures'; readonly figures: FleetFigures }
  | { readonly type: 'failed'; readonly error: string };

/** The name of the n-th node, and its labels: a thousand racks, each with a thousandth of the nodes. */
export const nodeName = (n: number): string => `n${String(n).padStart(6, '0')}`;
export const labelsOf = (n: number): Readonly<Record<string, string>> => ({
  role: n % 5 === 0 ? 'edge' : 'worker',
  zone: 'abc'[n % 3] as string,
  rack: `r${n % 1000}`,
});
