import type { Fact, FactOf, FactType, NewFact, ServiceName, Targets, ViewBucket, ViewValues } from '#libs/contracts';
import type { GatherEffect } from './gathering.js';

/** One fact of the ledger, as one copy of a service read it. */
export interface Entry {
  /** In the stream LEDGER. */
  readonly sequence: number;
  /** When this copy read it, monotonic: deadlines count from here. */
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

/** Work that is too slow for a decision, such as rendering or reading blobs. A decision asks for it by key. */
export interface Need {
  /** The same work has the same key. A result is used only for its key. */
  readonly key: string;
}

/** The result of one decision. */
export interface Decision<I, N extends Need> {
  /** The facts to append, at most MAX_BATCH: together or not at all, unless they are separable. */
  readonly facts: readonly NewFact[];
  /** What to answer the senders of inputs once the facts are appended. Inputs without an entry are simply done. */
  readonly answers: ReadonlyMap<I, Answer>;
  /** Inputs that wait for a later decision, because what they need is not gathered yet. */
  readonly waiting: ReadonlySet<I>;
  /** What must be gathered before more can be decided. */
  readonly needs: readonly N[];
  /** There is more to append than fits in a batch: decide again at once. */
  readonly more: boolean;
  /** When to decide again even if nothing happens, monotonic. */
  readonly wakeAtMs: number | undefined;
  /** Results that save work in the next decision, for `remember`. */
  readonly memory?: unknown;
}

/** The answer to a request under `ops.`: data, or a refusal with a stable code. */
export type Answer =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** The most facts that nats-server accepts in one atomic batch. */
export const MAX_BATCH = 1_000;

/**
 * The pure part of a service. `evolve` changes the state in place, so the cost of a fact depends only on what it
 * touches. `decide` leaves the state unchanged.
 *
 * S the state · I the inputs (messages, requests, observations) · N what it needs gathered · G what gathering gives
 */
export interface Core<S, I, N extends Need = never, G = never> {
  readonly name: ServiceName;
  /**
   * Raise it whenever the fold changes. A snapshot of another version is only read if `migrations` lead from that
   * version to this one.
   */
  readonly version: number;
  /**
   * By version: converts its dump to a dump of the next version. Without a migration, a new version must fold the whole
   * ledger, which is impossible once the ledger was trimmed.
   */
  readonly migrations?: Readonly<Record<number, (dumped: unknown) => unknown>>;
  /** The facts that the fold uses; all others are skipped unread. */
  readonly reads: readonly FactType[];
  /** Whether `config.rendered` is to be read with its targets. */
  readonly wantsTargets: boolean;
  /** Gathering is quick for this core, so facts wait for it and all go into one batch. */
  readonly gathersFirst?: boolean;
  /**
   * Whether a gathered result may be reused by later decisions. Its key must name everything that it depends on, and it
   * must be small. Without this function, nothing is reused.
   */
  keeps?(gathered: G): boolean;
  /**
   * Does the work that `decide` asked for, on the same state. Reads and writes blobs through effects. Returns a result
   * for each key.
   */
  gather?(needs: readonly N[], state: S): Generator<GatherEffect, ReadonlyMap<string, G>, unknown>;
  initial(): S;
  evolve(state: S, entry: Entry): void;
  decide(state: S, inputs: readonly I[], gathered: ReadonlyMap<string, G>, now: Now): Decision<I, N>;
  /** Stores a decision's `memory` in the state, even if its facts are not appended. No answer may depend on it. */
  remember?(state: S, memory: unknown): void;
  /**
   * Whether the facts of a decision may be appended one by one: the state must be correct after each of them, no matter
   * who decides next. This avoids the cost of an atomic batch in nats-server (ADR 30). Without this function, facts are
   * always appended as a batch.
   */
  separable?(facts: readonly NewFact[]): boolean;
  /** The keys of views whose value may have changed since the last call, as `bucket/key`. */
  takeTouched(state: S): ReadonlySet<string>;
  /** Every key of the views that this service owns, for a copy that becomes the leader. */
  viewKeys(state: S): Iterable<string>;
  /** The value of one key, without `ledger`; undefined when there is nothing to show. */
  view(state: S, key: ViewKey): ViewBody | undefined;
  /** The buckets whose keys this core forgets. A value of a key that it does not know any more is deleted. */
  readonly forgets?: readonly ViewBucket[];
  /** Call this when the view of this key was written, with the monotonic time. */
  onViewWritten?(state: S, key: ViewKey, atMs: number): void;
  /** The cursor: up to which sequence the input stream was processed. */
  cursor?(state: S): number;
  /** JSON of the whole state, and back. Monotonic times are left out: they start over at `now`. */
  dump(state: S): unknown;
  load(dumped: unknown, readMs: number): S;
}

export interface Now {
  /** Monotonic milliseconds of this copy. */
  readonly monotonicMs: number;
  /** Since when this copy leads with an unbroken connection, monotonic; undefined if it does not. */
  readonly leadingSinceMs: number | undefined;
  /**
   * Milliseconds since 1970, for limits of hours that must outlast restarts. Clocks of machines differ, so nothing that
   * must be safe may depend on it.
   */
  readonly wallMs: number;
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
