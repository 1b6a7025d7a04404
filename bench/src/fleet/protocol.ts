/** What the bench tells the process of the appliers. */
export interface FleetOptions {
  readonly urls: readonly string[];
  readonly nodes: number;
  readonly connections: number;
  /** 0: no heartbeats. */
  readonly heartbeatMs: number;
  /** Whether the nodes announce themselves; under the floor nobody listens. */
  readonly announce: boolean;
}

export type ToFleet =
  | { readonly do: 'start'; readonly options: FleetOptions }
  /** Forget what was measured so far. */
  | { readonly do: 'reset' }
  | { readonly do: 'figures' };

/** What the appliers did since the last reset. */
export interface FleetFigures {
  readonly applied: number;
  /** Milliseconds from one node's report to the next applier's start, in order. Of use with a budget of 1 only. */
  readonly handoffsMs: readonly number[];
  readonly refused: number;
  readonly repeated: number;
}

export type FromFleet =
  | { readonly says: 'started' }
  | { readonly says: 'figures'; readonly figures: FleetFigures }
  | { readonly says: 'failed'; readonly error: string };

/** The name of the n-th node, and its labels: a thousand racks of a thousandth each. */
export const nodeName = (n: number): string => `n${String(n).padStart(6, '0')}`;
export const labelsOf = (n: number): Readonly<Record<string, string>> => ({
  role: n % 5 === 0 ? 'edge' : 'worker',
  zone: 'abc'[n % 3] as string,
  rack: `r${n % 1000}`,
});
