import type { Call } from './stand-in-server.js';

/** What the bench asks the process of the stand-ins. */
export type ToStandIns =
  | {
      readonly do: 'start';
      readonly count: number;
      readonly key: string;
      readonly cert: string;
      readonly token: string;
    }
  /** Looks, and starts counting from zero. */
  | { readonly do: 'look' };

export interface StandInFigures {
  /** The addresses of the API servers. */
  readonly origins: readonly string[];
  /** Requests since the last look, by verb. */
  readonly counts: Readonly<Record<string, number>>;
  /** Connections that were opened since the last look, and those that are open. */
  readonly opened: number;
  readonly connections: number;
  readonly watches: number;
  /** The calls to the first server since the last look, in order. */
  readonly first: readonly Call[];
}

/** What the bench asks the bare client: to make these calls to each server, so many servers at a time. */
export interface BareWork {
  readonly origins: readonly string[];
  readonly calls: readonly Call[];
  readonly atOnce: number;
  readonly ca: string;
  readonly token: string;
}

export interface BareDone {
  readonly ms: number;
}
