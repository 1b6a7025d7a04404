import type { Fact, FactOf, FactType, NewFact, ServiceName, Targets, ViewBucket, ViewValues } from '#libs/contracts';
import type { GatherEffect } from './gathering.js';

/** One fact of the ledger, as one copy of a service read it. */
export interface Entry {
  /** In the stream LEDGER. */
  readonly sequence: number;
  /** Monotonic, of the copy that read it: deadlines run from here. */
  readonly readMs: number;
  readonly fact: Fact;
  /** With `config.rendered`, for cores that ask for targets: the blobs that it names, merged. */
  readonly targets?: Targets;
}

/** A fold as a table: what each fact changes in the state. A core reads the facts that its table has, and no others. */
export type FactTable<S> = { readonly [T in FactType]?: (state: S, fact: FactOf<T>, entry: Entry) => void };
export const folding = <S>(table: FactTable<S>): Pick<Core<S, never>, 'reads' | 'evolve'> => ({
  reads: Object.keys(table) as FactType[],
  evolve: (state, entry) => table[entry.fact.type]?.(state, entry.fact as never, entry),
});

/** Work too slow for a decision (a rendering, reading blobs), asked for by key and done beforehand. */
export interface Need {
  /** The same work has the same key; a result is used only for the key it was made for. */
  readonly key: string;
}

/** What one decision comes to. */
export interface Decision<I, N extends Need> {
  /** Appended together or not at all, unless they are separable; at most MAX_BATCH. */
  readonly facts: readonly NewFact[];
  /** What to tell the sender of an input, once the facts stand; inputs without an entry are just done. */
  readonly answers: ReadonlyMap<I, Answer>;
  /** Inputs that this decision leaves for a later one: what they need is not gathered yet. */
  readonly held: ReadonlySet<I>;
  /** What has to be gathered before more can be decided. */
  readonly needs: readonly N[];
  /** There is more to append than fits in a batch: decide again at once. */
  readonly more: boolean;
  /** When to decide again though nothing happens, monotonic. */
  readonly wakeAtMs: number | undefined;
  /** What it found out that spares the next decision work, for `remember`. */
  readonly memory?: unknown;
}

/** The answer to a request under `ops.`: data, or a refusal with a stable code. */
export type Answer =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** The most facts that nats-server takes in one atomic batch. */
export const MAX_BATCH = 1_000;

/**
 * The pure part of a service. The fold owns its state and changes it in place, so that a fact costs what it touches and
 * not what there is; `decide` leaves the state as it found it.
 *
 * S the state · I the inputs (messages, requests, observations) · N what it needs gathered · G what gathering gives
 */
export interface Core<S, I, N extends Need = never, G = never> {
  readonly name: ServiceName;
  /**
   * Raised whenever the fold changes: a snapshot of another version is not read, unless there is a way from that to
   * this.
   */
  readonly version: number;
  /**
   * From a version: its dump as the next version would have dumped it. Without it a new version has to fold the whole
   * ledger, and cannot where that was trimmed.
   */
  readonly migrations?: Readonly<Record<number, (dumped: unknown) => unknown>>;
  /** The facts that the fold uses; all others are skipped unread. */
  readonly reads: readonly FactType[];
  /** Whether `config.rendered` is to be read with its targets. */
  readonly wantsTargets: boolean;
  /** What it needs is gathered quickly: facts that could go without it wait for it, and all go in one batch. */
  readonly gathersFirst?: boolean;
  /**
   * Whether something gathered may serve later decisions, too: its key says all that it depends on, and it is small.
   * Without it nothing may.
   */
  keeps?(gathered: G): boolean;
  /**
   * Does the work that `decide` needs, on the state that it was needed for: reads and writes blobs by way of effects.
   * Gives a result for each key.
   */
  gather?(needs: readonly N[], state: S): Generator<GatherEffect, ReadonlyMap<string, G>, unknown>;
  initial(): S;
  evolve(state: S, entry: Entry): void;
  decide(state: S, inputs: readonly I[], gathered: ReadonlyMap<string, G>, now: Now): Decision<I, N>;
  /** Takes a decision's `memory` into the state, whether its facts are appended or not: no answer may depend on it. */
  remember?(state: S, memory: unknown): void;
  /**
   * Whether a decision's facts need not stand together: after each of them the state is right on its own, no matter who
   * decides next. They are then appended without a batch, which costs nats-server more than what is in it
   * (ADR 30). Without it none are.
   */
  separable?(facts: readonly NewFact[]): boolean;
  /** The keys of views whose value may have changed since this was last asked, as `bucket/key`. */
  takeTouched(state: S): ReadonlySet<string>;
  /** Every key of the views that this service owns, for a copy that begins to lead. */
  viewKeys(state: S): Iterable<string>;
  /** The value of one key, without `ledger`; undefined when there is nothing to show. */
  view(state: S, key: ViewKey): ViewBody | undefined;
  /** A view of this key is known to be written, at this monotonic time. */
  shown?(state: S, key: ViewKey, atMs: number): void;
  /** Sequence in its input stream up to which inputs were decided, for a core that reads one from there on. */
  cursor?(state: S): number;
  /** JSON of the whole state, and back. Monotonic times are left out: they start over at `now`. */
  dump(state: S): unknown;
  load(dumped: unknown, readMs: number): S;
}

export interface Now {
  /** Monotonic milliseconds of this copy. */
  readonly monotonicMs: number;
  /** Since when this copy leads with an unbroken connection, monotonic; undefined when it does not. */
  readonly leadingSinceMs: number | undefined;
}

export interface ViewKey {
  readonly bucket: ViewBucket;
  readonly key: string;
}
export type ViewBody = { [B in ViewBucket]: Omit<ViewValues[B], 'ledger'> }[ViewBucket];

export const viewKey = (bucket: ViewBucket, key: string): string => `${bucket}/${key}`;
export function parseViewKey(text: string): ViewKey {
  const slash = text.indexOf('/');
  return { bucket: text.slice(0, slash) as ViewBucket, key: text.slice(slash + 1) };
}

/** Lower-case hex sha256 of a text's UTF-8. A port, because a core has no crypto. */
export type Digest = (text: string) => string;

/** For the end of an exhaustive switch. */
export function assertNever(value: never): never {
  throw new Error(`not handled: ${JSON.stringify(value)}`);
}
