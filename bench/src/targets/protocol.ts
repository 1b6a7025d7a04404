/** What the bench asks the process of the stand-ins. */
export type ToStandIns = { readonly do: 'start'; readonly count: number } | { readonly do: 'look' };

export interface StandInFigures {
  /** The addresses of the replicas. */
  readonly origins: readonly string[];
  /** All calls since the last look, without logins. */
  readonly calls: number;
  readonly logins: number;
  /** The calls of the first replica since the last look, in order, and the rules that it has. */
  readonly first: readonly string[];
  readonly rules: readonly object[];
}

/** What the bench asks the bare client: to make these calls at each replica, so many replicas at a time. */
export interface BareWork {
  readonly origins: readonly string[];
  readonly calls: readonly string[];
  readonly atOnce: number;
  /** The body of each write of an object. */
  readonly object: object;
}

export interface BareDone {
  readonly ms: number;
  readonly calls: number;
}
