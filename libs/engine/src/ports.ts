import type { NewFact, ServiceName, ViewBucket } from '#libs/contracts';
import type { Answer, Entry, Now, ViewBody, ViewKey } from './core.js';
import type { GatherPort } from './gathering.js';
import type { ViewPosition } from './leadership.js';
import type { Slot, SnapshotInfo } from './snapshots.js';
import type { Effects } from './steps.js';

/**
 * The effects of a copy of a service, by port. Production carries them out on NATS, the simulation in a seeded world.
 */

// ---- the ledger ----

export interface LedgerPort extends BoundsPort {
  /** Reads facts that have arrived, without waiting. */
  read(args: { readonly after: number }): Tail;
  /** The same, up to the sequence that the leader of the stream reports now. */
  'catch-up'(args: { readonly after: number }): Tail;
  /**
   * Appends facts together or not at all. `separate` facts are appended one by one, each only after the one before it,
   * so the result is always a first part of the list.
   */
  append(args: {
    readonly facts: readonly NewFact[];
    readonly expected: number;
    readonly separate: boolean;
  }): AppendResult;
  /** Starts to read the ledger after this sequence. */
  follow(args: { readonly after: number }): void;
  /** Facts that a person has voided, with the sequences of the `ledger.voided` facts. */
  'read-voided'(): ReadonlyMap<number, number>;
  'is-voided'(args: { readonly sequence: number }): boolean;
}
interface BoundsPort {
  bounds(): Bounds;
}

/** The first and last sequence of the ledger, from the leader of the stream. */
export interface Bounds {
  readonly first: number;
  readonly last: number;
}

/** A part of the ledger as one core reads it: the facts that it uses, and the sequence up to which it has read. */
export interface Tail {
  readonly entries: readonly Entry[];
  /** Facts that the core does not use are not among the entries, but count as folded. */
  readonly upTo: number;
}

/**
 * The result of an append. After `unclear` (a timeout), it may or may not have happened. After `refused`, some separate
 * facts may be appended. Reading the end of the ledger shows which.
 */
export type AppendResult =
  | ({ readonly outcome: 'appended' } & Tail)
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'unclear' };

// ---- time and log ----

export interface ClockPort {
  now(): Now;
  /** Waits for a time that grows with the number of tries, with jitter, so that copies do not retry all at once. */
  'back-off'(args: { readonly tries: number; readonly leastMs: number; readonly mostMs: number }): void;
  /** Waits until something is new, or until this monotonic time. Does not wait if a turn is due. */
  wait(args: { readonly untilMs: number | undefined }): void;
}
export interface LogPort {
  log(args: { readonly level: 'info' | 'warn' | 'error'; readonly text: string; readonly details: object }): void;
}

// ---- inputs, requests, election; blobs are in gathering.ts ----

export interface RequestPort<I> {
  settle(args: { readonly inputs: readonly I[]; readonly answers: ReadonlyMap<I, Answer> }): void;
  /** Returns inputs after a bug, and answers their senders with the error. */
  'give-back'(args: { readonly error: Error }): void;
  /** Publishes the state of the leader to the copies that follow it. */
  'show-state'(): void;
  /** Starts or stops running for election. Stopping gives up leadership. The events are `elected` and `deposed`. */
  stand(args: { readonly stands: boolean }): void;
}

// ---- views ----

export interface ViewWrite {
  readonly key: ViewKey;
  /** Undefined: the value is deleted. */
  readonly value: ViewBody | undefined;
}
export interface ViewPort {
  /** Reads which ledger sequences the views show: the highest of its own, and the newest of each bucket. */
  'load-views'(): readonly ViewPosition[];
  /** The keys that have a value in this bucket, which was loaded before. */
  'loaded-keys'(args: { readonly bucket: ViewBucket }): readonly string[];
  /** Returns when all of them are known to be written, with the monotonic time. */
  views(args: { readonly writes: readonly ViewWrite[]; readonly ledger: number }): number;
  /** The highest ledger sequence that this view or any bucket's newest one shows now. */
  'highest-view'(args: { readonly view: ViewPosition }): number;
}

// ---- snapshots ----

export interface SnapshotPort {
  /** All snapshots of a service, of any version. */
  'list-snapshots'(args: { readonly service: ServiceName }): readonly SnapshotInfo[];
  /** Undefined if it cannot be read, or belongs to another ledger. One of another sequence if it was replaced. */
  'read-snapshot'(args: {
    readonly snapshot: SnapshotInfo;
  }): { readonly sequence: number; readonly state: unknown } | undefined;
}
/** What is needed to write a snapshot. */
export interface SnapshotWritePort extends BoundsPort {
  'list-slots'(args: { readonly names: readonly string[] }): readonly Slot[];
  'write-snapshot'(args: { readonly name: string } & Pick<NewSnapshot, 'sequence' | 'loads' | 'text'>): void;
}
export interface KeepPort {
  /** Writes a snapshot in the background, unless one is being written. Returns whether this one is being written. */
  keep(args: { readonly snapshot: NewSnapshot }): boolean;
}
export interface NewSnapshot {
  readonly service: string;
  readonly version: number;
  readonly loads: readonly number[];
  readonly sequence: number;
  readonly text: string;
}

// ---- trimming ----

export interface TrimPort extends SnapshotPort, LogPort {
  'ledger-age'(): LedgerAge;
  /** When a fact was stored, by the server's clock; undefined if it does not exist. */
  'stored-at'(args: { readonly sequence: number }): number | undefined;
  /** Deletes all facts up to this sequence. Returns how many. */
  purge(args: { readonly upTo: number }): number;
  'remove-snapshot'(args: { readonly snapshot: SnapshotInfo }): void;
}
/** The ledger with the times of the server, because clocks differ. */
export interface LedgerAge extends Bounds {
  readonly messages: number;
  readonly firstStoredMs: number;
  readonly nowMs: number;
}

/** All effects of a copy. */
export interface ServicePort<I>
  extends LedgerPort, ClockPort, LogPort, RequestPort<I>, GatherPort, ViewPort, SnapshotPort, KeepPort {}
export type ServiceEffect<I> = Effects<ServicePort<I>>;

// ---- errors that an effect may throw ----

/** The effect was not carried out, or it is unknown whether it was: try again. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** The next fact cannot be read: a newer release wrote it, or it should not exist. */
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
 * The fold no longer matches the ledger: a person voided a fact in it, the ledger was restored from a backup, or it was
 * trimmed before this copy had read it.
 */
export class RefoldError extends Error {
  override readonly name = 'RefoldError';
}
