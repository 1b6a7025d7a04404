import { asker, type Effects, type Program } from '#libs/engine';
import { mayBeWrittenLater, type Journal, type Work } from './journal.js';

/**
 * The journal of a target elsewhere is one value, which several copies of an applier share. Its owner is in the value,
 * and each write is a compare-and-set. So:
 *
 * 1. A copy that lost a target can neither begin nor confirm anything: both are writes of the journal.
 * 2. Until the deadline of a lease, only the copy that began it writes to the target. Nobody else takes over before.
 * 3. After that, or without a lease, a copy reads that it still owns the target before each write to it.
 * 4. A write to the target has ended one call timeout after it was allowed. A new owner waits that long.
 * 5. If a lease may be repeated, 2 does not hold: each write needs 3, and another copy may take over at any time.
 * 6. If it is not known whether the value still has a lease, it is written again before anything is written to the
 *    target.
 */
export interface OwnershipPort {
  /** The time in milliseconds, which is nearly the same for all copies. */
  now(): number;
  'read-value'(): StoredValue | undefined;
  /**
   * The new revision, or `overtaken` if the value no longer has the revision that the write names, or `not-sent` if
   * there is no connection. After an error it is not known whether the value was written.
   */
  'write-value'(value: StoredValue): number | 'overtaken' | 'not-sent';
  sleep(wait: { readonly ms: number }): void;
}

export interface StoredValue {
  /** Empty if somebody deleted it. */
  readonly text: string;
  /** 0 if there is none. */
  readonly revision: number;
}

export type OwnershipEffect = Effects<OwnershipPort>;
type Owning<T> = Program<OwnershipEffect, T>;

/** The journal as a text. */
export interface JournalCodec {
  encode(journal: Journal): string;
  /** Or why the text is no journal. */
  decode(text: string): Journal | string;
}

export interface OwnershipOptions {
  readonly node: string;
  /** Identifies this copy, and no earlier run of it. */
  readonly owner: string;
  readonly codec: JournalCodec;
  /** The journal of a target that nobody has owned yet. */
  readonly first: Journal;
  /**
   * What a copy was doing may be done again by another one that knows nothing of it. Then nobody waits for the deadline
   * of a lease, but in a lease, too, nothing is written without a connection to NATS.
   */
  readonly isRepeatable?: boolean | undefined;
}

/** Another copy has taken over the target. This one must stop. */
export class LostTargetError extends Error {
  override readonly name = 'LostTargetError';
}

const NO_CONNECTION = 'there is no connection to NATS';
class NotSentError extends Error {
  constructor() {
    super(NO_CONNECTION);
  }
}

/** The clocks of two copies differ by less. */
const CLOCKS_DIFFER_MS = 2_000;
/** No call to a target takes longer. */
export const CALL_TIMEOUT_MS = 10_000;
/** How often to look whether a copy that may still work on a lease has finished it. */
const LOOK_MS = 2_000;

const ask = asker<OwnershipPort>();

/** The journal of one target that this copy owns. */
export class Ownership {
  isLost = false;
  /** What the applier goes by. */
  private current: Journal;
  /** A write had no answer, so it is not known what the value says. */
  private isUnclear = false;
  /** Until then no other copy takes over, whichever journal the value has. */
  private leaseEndsMs: number;

  private constructor(
    private readonly options: OwnershipOptions,
    private revision: number,
    readonly journal: Journal,
  ) {
    this.current = journal;
    this.leaseEndsMs = this.leaseEndOf(journal);
  }

  /**
   * Takes the target over. If its journal has unfinished work of a copy that did not hand it over, waits until the
   * deadline of that lease: without a connection to NATS, that copy may still be working on it.
   */
  static *claim(options: OwnershipOptions): Owning<Ownership> {
    const { owner, first, isRepeatable = false } = options;
    for (;;) {
      const stored = yield* ask({ do: 'read-value' });
      const { journal, owner: other } =
        stored === undefined || stored.text === '' ? { journal: first, owner: '' } : decoded(stored.text, options);
      const openMs = other === '' ? undefined : untilOver(journal, yield* ask({ do: 'now' }));
      const overMs = isRepeatable && openMs !== undefined ? 0 : openMs;
      if (overMs !== undefined && overMs > 0 && other !== owner) {
        yield* ask({ do: 'sleep', ms: Math.min(overMs, LOOK_MS) });
        continue;
      }
      const text = encoded(journal, owner, options);
      const revision = yield* ask({ do: 'write-value', text, revision: stored?.revision ?? 0 });
      if (revision === 'not-sent') throw new NotSentError();
      if (revision === 'overtaken') {
        yield* ask({ do: 'sleep', ms: LOOK_MS });
        continue;
      }
      // Also if this copy is in the journal already: the answer to its first claim was lost.
      if (overMs !== undefined) yield* ask({ do: 'sleep', ms: CALL_TIMEOUT_MS });
      return new Ownership(options, revision, journal);
    }
  }

  /** The work that has begun and has not ended; undefined between leases. */
  get work(): Work | undefined {
    return this.current.work;
  }

  *write(journal: Journal): Owning<void> {
    if (mayBeWrittenLater(this.current.work, journal.work)) this.current = journal;
    const { leaseEndsMs, isUnclear } = this;
    this.leaseEndsMs = Math.min(leaseEndsMs, this.leaseEndOf(journal));
    this.isUnclear = true;
    try {
      yield* this.put(journal, this.options.owner);
    } catch (error) {
      if (error instanceof NotSentError) Object.assign(this, { leaseEndsMs, isUnclear });
      throw error;
    }
    this.current = journal;
    this.leaseEndsMs = this.leaseEndOf(journal);
    this.isUnclear = false;
  }

  /** Tells the next owner that this copy does nothing any more, so that it need not wait for a deadline. */
  *handOver(journal: Journal): Owning<void> {
    if (!this.isLost) yield* this.put(journal, '');
  }

  /**
   * Before each write to the target. Returns the time by which that write must have ended. Throws LostTargetError if
   * another copy has taken over.
   */
  *fence(): Owning<number> {
    if (this.isLost) throw this.lost();
    const nowMs = yield* ask({ do: 'now' });
    const untilMs = nowMs + CALL_TIMEOUT_MS;
    if (nowMs < this.leaseEndsMs) return untilMs;
    // The value may say that a lease is over which this copy rolls back: that must be corrected first.
    if (this.isUnclear) yield* this.write(this.current);
    else if (!this.isOwn(yield* ask({ do: 'read-value' }))) throw this.losing();
    return untilMs;
  }

  /** A lost answer leaves open whether the value was written, so a refusal may be due to a write of this copy. */
  private *put(journal: Journal, owner: string): Owning<void> {
    if (this.isLost) throw this.lost();
    const text = encoded(journal, owner, this.options);
    const revision = yield* ask({ do: 'write-value', text, revision: this.revision });
    if (revision === 'not-sent') throw new NotSentError();
    if (revision !== 'overtaken') return void (this.revision = revision);
    const stored = yield* ask({ do: 'read-value' });
    if (!this.isOwn(stored)) throw this.losing();
    const again = yield* ask({ do: 'write-value', text, revision: stored.revision });
    if (again === 'overtaken') throw this.losing();
    if (again === 'not-sent') throw new Error(NO_CONNECTION);
    this.revision = again;
  }

  private leaseEndOf({ work }: Journal): number {
    return work === undefined || this.options.isRepeatable === true ? -Infinity : deadlineMs(work);
  }

  private isOwn(stored: StoredValue | undefined): stored is StoredValue {
    return stored !== undefined && ownerOf(stored.text) === this.options.owner;
  }

  private losing(): Error {
    this.isLost = true;
    return this.lost();
  }

  private lost(): Error {
    return new LostTargetError(`another copy of the applier has taken over ${this.options.node}`);
  }
}

/** How long the owner of this journal may still work on its lease; undefined if it changes nothing on the target. */
function untilOver({ work, sound }: Journal, nowMs: number): number | undefined {
  if (work === undefined) return sound ? undefined : 0;
  return deadlineMs(work) + CLOCKS_DIFFER_MS - nowMs;
}

const deadlineMs = ({ readMs, applyMs }: Work): number => readMs + applyMs;

/** The first line names the owner; it is empty if that has handed the target over. The rest is the journal. */
const encoded = (journal: Journal, owner: string, { codec }: OwnershipOptions): string =>
  `${owner}\n${codec.encode(journal)}`;

const ownerOf = (text: string): string => text.slice(0, text.indexOf('\n'));

function decoded(
  text: string,
  { codec }: OwnershipOptions,
): {
  readonly journal: Journal;
  readonly owner: string;
} {
  const journal = codec.decode(text.slice(text.indexOf('\n') + 1));
  if (typeof journal === 'string')
    throw new Error(
      `the journal in the bucket journals cannot be used: ${journal}. Delete the key: the target then gets its config again, and what it has now counts as its originals`,
    );
  return { journal, owner: ownerOf(text) };
}
