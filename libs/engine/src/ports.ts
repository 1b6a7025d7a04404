import type { NewFact, ServiceName } from '#libs/contracts';
import type { Answer, Entry, Now, ViewBody, ViewKey } from './core.js';
import type { GatherPort } from './gathering.js';
import type { ViewPosition } from './leadership.js';
import type { Slot, SnapshotInfo } from './snapshots.js';
import type { Answers, Effects } from './steps.js';

/** What a copy of a service asks of its world, by port. Production answers with NATS, the simulation from a seed. */

// ---- the ledger ----

export interface LedgerPort extends BoundsPort {
  /** Facts that have arrived since, without waiting. */
  read(asked: { readonly after: number }): Tail;
  /** The same, but up to the sequence that the stream's leader names now. */
  'catch-up'(asked: { readonly after: number }): Tail;
  /**
   * Together or not at all; or, where they are `separate`, each only behind the one before it, so that what is appended
   * is a first part of them.
   */
  append(asked: {
    readonly facts: readonly NewFact[];
    readonly expected: number;
    readonly separate: boolean;
  }): AppendResult;
  /** The reading of the ledger starts behind this. */
  follow(asked: { readonly after: number }): void;
  /** Facts that persons declared void, and the sequences of those declarations. */
  'read-voided'(): ReadonlyMap<number, number>;
  'is-voided'(asked: { readonly sequence: number }): boolean;
}
interface BoundsPort {
  bounds(): Bounds;
}

/** Where the ledger begins and ends, as the stream's leader says. */
export interface Bounds {
  readonly first: number;
  readonly last: number;
}

/**
 * A piece of the ledger as one core reads it: the facts that it uses, and the sequence up to which nothing else is
 * left.
 */
export interface Tail {
  readonly entries: readonly Entry[];
  /** Facts that the core does not read are not among the entries, but count as folded. */
  readonly upTo: number;
}

/**
 * What an append came to. After `unclear` (a time-out) it may have happened or not, and of separate facts some may
 * stand after `refused`: the tail tells.
 */
export type AppendResult =
  | ({ readonly outcome: 'appended' } & Tail)
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'unclear' };

// ---- time and log ----

export interface ClockPort {
  now(): Now;
  /** For a moment that grows with the tries, with jitter, so that many do not come at once. */
  'back-off'(asked: { readonly tries: number; readonly leastMs: number; readonly mostMs: number }): void;
  /** Until something is new, or until this monotonic time; not at all where a turn is due. */
  wait(asked: { readonly untilMs: number | undefined }): void;
}
export interface LogPort {
  log(asked: { readonly level: 'info' | 'warn' | 'error'; readonly text: string; readonly details: object }): void;
}

// ---- inputs, requests, election; blobs are in gathering.ts ----

export interface RequestPort<I> {
  settle(asked: { readonly inputs: readonly I[]; readonly answers: ReadonlyMap<I, Answer> }): void;
  /** A bug: those that wait for these inputs are told. */
  'give-back'(asked: { readonly error: Error }): void;
  /** Those who follow this copy see its state while it leads. */
  'show-state'(): void;
  /** The last sequence of the stream in which the core's cursor is a place; undefined where it has none. */
  'input-end'(): { readonly stream: string; readonly last: number } | undefined;
  /** Stands for election, or gives up what it holds and stands no more. The world says `elected` and `deposed`. */
  stand(asked: { readonly stands: boolean }): void;
}

// ---- views ----

export interface ViewWrite {
  readonly key: ViewKey;
  readonly value: ViewBody;
}
export interface ViewPort {
  /** Reads what the views show, for a copy that is to write them: the highest of its own, and the newest of each. */
  'load-views'(): readonly ViewPosition[];
  /** Answers when all of them were known to be written, monotonic. */
  views(asked: { readonly writes: readonly ViewWrite[]; readonly ledger: number }): number;
  /** The highest ledger sequence that this view or any bucket's newest one shows now. */
  'highest-view'(asked: { readonly view: ViewPosition }): number;
}

// ---- snapshots ----

export interface SnapshotPort {
  /** All of a service, of whatever version. */
  'list-snapshots'(asked: { readonly service: ServiceName }): readonly SnapshotInfo[];
  /** Undefined when it cannot be read, is another by now, or is of another ledger. */
  'read-snapshot'(asked: { readonly snapshot: SnapshotInfo }): { readonly state: unknown } | undefined;
}
/** What it takes to write one. */
export interface SnapshotWritePort extends BoundsPort {
  'list-slots'(asked: { readonly names: readonly string[] }): readonly Slot[];
  'write-snapshot'(asked: { readonly name: string } & Pick<NewSnapshot, 'sequence' | 'loads' | 'text'>): void;
}
export interface KeepPort {
  /** Writes a snapshot next to the work, unless one is being written; whether it is being written now. */
  keep(asked: { readonly snapshot: NewSnapshot }): boolean;
}
export interface NewSnapshot {
  readonly service: string;
  readonly version: number;
  readonly loads: readonly number[];
  readonly sequence: number;
  /** Made at once: the fold goes on changing its state in place. */
  readonly text: string;
}

// ---- trimming ----

export interface TrimPort extends SnapshotPort, LogPort {
  'ledger-age'(): LedgerAge;
  /** When a fact was stored, by the server's clock; undefined when it is not there. */
  'stored-at'(asked: { readonly sequence: number }): number | undefined;
  /** Takes off all up to this; how many they were. */
  purge(asked: { readonly upTo: number }): number;
  'remove-snapshot'(asked: { readonly snapshot: SnapshotInfo }): void;
}
/** The ledger with the server's own times, for clocks differ. */
export interface LedgerAge extends Bounds {
  readonly messages: number;
  readonly firstStoredMs: number;
  readonly nowMs: number;
}

/** Everything that the life of a copy asks of its world. */
export interface ServicePort<I>
  extends LedgerPort, ClockPort, LogPort, RequestPort<I>, GatherPort, ViewPort, SnapshotPort, KeepPort {}
export type ServiceEffect<I> = Effects<ServicePort<I>>;
export type ServiceAnswers = Answers<ServicePort<never>>;

// ---- what a world may say instead of an answer ----

/** The world did not do what was asked, or nobody knows whether it did: try again. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** The next fact cannot be read: a newer release wrote it, or nobody should have. */
export class UnreadableFactError extends Error {
  override readonly name = 'UnreadableFactError';
  constructor(
    readonly sequence: number,
    reason: string,
  ) {
    super(reason);
  }
}

/**
 * What was folded no longer leads on to the ledger: a person voided a fact of it, the ledger is a restored backup, or
 * it was trimmed before this copy had read it.
 */
export class RefoldError extends Error {
  override readonly name = 'RefoldError';
}
