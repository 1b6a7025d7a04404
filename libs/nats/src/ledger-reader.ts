import type { JsMsg } from '@nats-io/jetstream';
import {
  decodeFact,
  factTypeOf,
  LEDGER,
  WireError,
  type Fact,
  type FactOf,
  type FactType,
  type Targets,
} from '#libs/contracts';
import { RefoldError, UnreachableError, UnreadableFactError, type Entry, type Tail } from '#libs/engine';
import { monotonicMs, Slices, type Logger } from '#libs/process';
import type { Bus } from './connection.js';
import type { AppendedFact, Ledger } from './ledger.js';
import type { LedgerFollower, LedgerTail } from './ledger-tail.js';
import { Signal } from './signal.js';
import { readAll } from './stream-reader.js';

export interface LedgerReaderOptions {
  readonly bus: Bus;
  readonly ledger: Ledger;
  readonly tail: LedgerTail;
  /** The facts to decode. All others are only counted. */
  readonly reads: readonly FactType[];
  /** Reads the blobs that `config.rendered` names. Not set if they are not needed. */
  readonly targets?: ((keys: readonly string[]) => Promise<Targets>) | undefined;
  /** Something arrived, or the reader can continue. */
  readonly onArrival: () => void;
  readonly logger: Logger;
}

/** The most messages, and the most bytes, that may wait to be folded: a message may have nearly a megabyte. */
const AHEAD = 2_000;
const AHEAD_BYTES = 16 * 2 ** 20;
/** How many messages are folded at once, even if the service needs none of them. */
const MANY = 500;
/** A consumer that delivers nothing for this long, although there is more, is recreated. */
const STALLED_MS = 5_000;

/** Follows the ledger for one copy of a service. */
export class LedgerReader {
  private readonly waiting: JsMsg[] = [];
  private waitingBytes = 0;
  private readonly slices = new Slices();
  private readonly arrival = new Signal();
  private readonly reads: ReadonlySet<FactType>;
  private readonly voided = new Set<number>();
  private following: LedgerFollower | undefined;
  private stopped = false;

  constructor(private readonly options: LedgerReaderOptions) {
    this.reads = new Set(options.reads);
  }

  /** Voided facts, and the sequences that voided them. Future facts cannot be voided: their writer folds them first. */
  async loadVoided(): Promise<ReadonlyMap<number, number>> {
    const voided = await this.readVoided();
    for (const sequence of voided.keys()) this.voided.add(sequence);
    return voided;
  }

  private async readVoided(): Promise<ReadonlyMap<number, number>> {
    const voided = new Map<number, number>();
    await readAll(this.options.bus, { stream: LEDGER, filters: ['ledger.voided.*'] }, (message) => {
      if (voidedSequence(message.subject) < message.seq) voided.set(voidedSequence(message.subject), message.seq);
    });
    return voided;
  }

  start(after: number): void {
    if (this.following !== undefined) {
      this.following.close();
      this.options.tail.begin();
    }
    this.waiting.length = 0;
    this.waitingBytes = 0;
    this.following = this.options.tail.follow(after, (message) => this.receive(message));
  }

  stop(): void {
    this.stopped = true;
    this.following?.close();
    this.arrival.give();
  }

  /** What has arrived and can be read. Throws UnreadableFactError if nothing can be read, and RefoldError. */
  async take(after: number): Promise<Tail> {
    const entries: Entry[] = [];
    let upTo = after;
    const readMs = monotonicMs();
    let used = 0;
    for (; used < this.waiting.length; used += 1) {
      const message = this.waiting[used] as JsMsg;
      if (message.seq <= upTo) continue;
      await this.slices.pause();
      const entry = await this.entryOf(message, upTo, readMs);
      if (entry instanceof UnreadableFactError) {
        if (upTo === after) throw entry;
        // The fact stays in the queue, and no later message must make this copy read again.
        this.options.onArrival();
        break;
      }
      if (entry !== undefined) entries.push(entry);
      upTo = message.seq;
    }
    for (const { data } of this.waiting.splice(0, used)) this.waitingBytes -= data.length;
    if (this.hasRoom) this.following?.goOn();
    return { entries, upTo };
  }

  private get hasRoom(): boolean {
    return this.waiting.length < AHEAD && this.waitingBytes < AHEAD_BYTES;
  }

  /** All facts up to the sequence that the stream's leader names now. Throws as `take` does. */
  async catchUp(after: number): Promise<Tail> {
    const last = await this.options.ledger.lastSequence();
    if (last < after)
      throw new RefoldError(
        `the ledger ends at ${last}, but ${after} was folded: it was restored from an older backup`,
      );
    const entries: Entry[] = [];
    let upTo = after;
    for (;;) {
      const tail = await this.take(upTo);
      entries.push(...tail.entries);
      const progressed = tail.upTo > upTo;
      upTo = tail.upTo;
      if (upTo >= last) return { entries, upTo };
      if (this.stopped) throw new UnreachableError('this copy is stopping');
      if (progressed) continue;
      const startedMs = monotonicMs();
      await this.arrival.wait(STALLED_MS);
      if (monotonicMs() - startedMs >= STALLED_MS && this.waiting.length === 0) this.start(upTo);
    }
  }

  /** The facts that this copy appended, as others will read them. */
  async tailOf(appended: readonly AppendedFact[]): Promise<Tail> {
    const readMs = monotonicMs();
    const entries: Entry[] = [];
    for (const { sequence, fact } of appended) {
      if (this.reads.has(fact.type)) entries.push(await this.withTargets(sequence, readMs, fact));
    }
    return { entries, upTo: (appended.at(-1) as AppendedFact).sequence };
  }

  private receive(message: JsMsg): boolean {
    this.waiting.push(message);
    this.waitingBytes += message.data.length;
    this.arrival.give();
    if (this.waiting.length >= MANY || !this.hasRoom || this.concerns(message)) this.options.onArrival();
    return this.hasRoom;
  }

  /** A fact that this copy does not use need not wake it: it is counted with the next one that it uses. */
  private concerns({ subject }: JsMsg): boolean {
    const type = factTypeOf(subject);
    return type !== undefined && (this.reads.has(type) || type === 'ledger.voided');
  }

  private async entryOf(
    message: JsMsg,
    upTo: number,
    readMs: number,
  ): Promise<Entry | undefined | UnreadableFactError> {
    if (message.seq !== upTo + 1) {
      throw new RefoldError(
        `the next fact is at sequence ${message.seq}, but this copy has folded only up to ${upTo}: the facts in between were trimmed`,
      );
    }
    const type = factTypeOf(message.subject);
    if (type === 'ledger.voided' && voidedSequence(message.subject) < message.seq)
      this.noteVoided(voidedSequence(message.subject), upTo);
    if (type === undefined || !this.reads.has(type) || this.voided.has(message.seq)) return undefined;
    try {
      return await this.withTargets(message.seq, readMs, decodeFact(message.subject, message.string()));
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      return new UnreadableFactError(
        message.seq,
        `sequence ${message.seq} of the ledger (${message.subject}) cannot be decoded: ${error.message}`,
      );
    }
  }

  private async withTargets(sequence: number, readMs: number, fact: Fact): Promise<Entry> {
    if (fact.type !== 'config.rendered' || this.options.targets === undefined) return { sequence, readMs, fact };
    const { targets } = fact as FactOf<'config.rendered'>;
    return { sequence, readMs, fact, targets: await this.options.targets(targets) };
  }

  private noteVoided(sequence: number, upTo: number): void {
    if (this.voided.has(sequence)) return;
    this.voided.add(sequence);
    if (sequence <= upTo) throw new RefoldError(`sequence ${sequence} of the ledger was voided after it was folded`);
  }

  /** Whether this fact is void. Later void facts need not stop this copy again; earlier ones were folded. */
  async mayPass(sequence: number): Promise<boolean> {
    if (!(await this.options.ledger.isVoided(sequence))) return false;
    for (const voided of (await this.readVoided()).keys()) if (voided >= sequence) this.voided.add(voided);
    return true;
  }
}

const voidedSequence = (subject: string): number => Number(subject.split('.').at(-1));
