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
import type { Entry, Tail } from '#libs/kernel';
import { monotonicMs, type Logger } from '#libs/runtime';
import type { Bus } from './connection.js';
import { HaltedError } from './errors.js';
import type { Appended, Ledger } from './ledger.js';
import type { Following, LedgerTail } from './ledger-tail.js';
import { growingMs, pause, Signal } from './signal.js';
import { readAll } from './stream-reader.js';

export interface LedgerReaderOptions {
  readonly bus: Bus;
  readonly ledger: Ledger;
  readonly tail: LedgerTail;
  /** The facts to decode; all others only count. */
  readonly reads: readonly FactType[];
  /** Reads the blobs that `config.rendered` names; left out where nobody wants them. */
  readonly targets?: ((keys: readonly string[]) => Promise<Targets>) | undefined;
  /** Something arrived, or the reader may go on again. */
  readonly onArrival: () => void;
  readonly logger: Logger;
}

/** What was folded no longer leads on to the ledger: a person voided a fact of it, the ledger is a restored backup, or it was trimmed before this copy had read it. */
export class RefoldError extends Error {
  override readonly name = 'RefoldError';
}

/** Why a copy that begins cannot go on, and how to see that it can by now. */
export interface Stuck {
  readonly reason: string;
  readonly isFreed: () => Promise<boolean>;
}

/** How many messages may wait to be folded. */
const AHEAD = 2_000;
/** So many are folded even if nothing among them is of use. */
const MANY = 500;
/** A reading that brings nothing for so long though there is more is begun anew. */
const STALLED_MS = 5_000;
/** How often a halted reader looks whether it may go on. */
const HALT_POLL_MS = 2_000;

/** Follows the ledger for one copy of a service, and stops where it finds what it cannot understand. */
export class LedgerReader {
  private readonly waiting: JsMsg[] = [];
  private readonly arrival = new Signal();
  private readonly reads: ReadonlySet<FactType>;
  private readonly voided = new Set<number>();
  private following: Following | undefined;
  private stopped = false;
  /** Why this reader does not go on; undefined when it does. */
  halted: string | undefined;
  /** Set when this copy cannot go on where the ledger begins: what it would have to start from is not there. */
  stuck: Stuck | undefined;

  constructor(private readonly options: LedgerReaderOptions) {
    this.reads = new Set(options.reads);
  }

  /** Facts that persons declared void, and the sequences of those declarations. Of what is yet to come none can be: who appends it folds it. */
  async loadVoided(): Promise<ReadonlyMap<number, number>> {
    const found = await this.readVoided();
    for (const sequence of found.keys()) this.voided.add(sequence);
    return found;
  }

  private async readVoided(): Promise<ReadonlyMap<number, number>> {
    const found = new Map<number, number>();
    await readAll(this.options.bus, { stream: LEDGER, filters: ['ledger.voided.*'] }, (message) => {
      if (voidedSequence(message.subject) < message.seq) found.set(voidedSequence(message.subject), message.seq);
    });
    return found;
  }

  /** Begins, or begins anew, behind this sequence. */
  start(after: number): void {
    if (this.following !== undefined) {
      this.following.close();
      this.options.tail.begin();
    }
    this.waiting.length = 0;
    this.halted = undefined;
    this.following = this.options.tail.follow(after, (message) => this.receive(message));
  }

  stop(): void {
    this.stopped = true;
    this.following?.close();
    this.arrival.give();
  }

  /** What has arrived, without waiting; stops short of what it cannot decode and is halted then. */
  async take(after: number): Promise<Tail> {
    const entries: Entry[] = [];
    let upTo = after;
    const readMs = monotonicMs();
    let used = 0;
    for (; used < this.waiting.length && this.halted === undefined; used += 1) {
      const message = this.waiting[used] as JsMsg;
      if (message.seq <= upTo) continue;
      const taken = await this.entryOf(message, upTo, readMs);
      if (taken === 'halted') break;
      if (taken !== undefined) entries.push(taken);
      upTo = message.seq;
    }
    this.waiting.splice(0, used);
    if (this.waiting.length < AHEAD) this.following?.goOn();
    return { entries, upTo };
  }

  /** All facts up to the sequence that the stream's leader names now. Throws HaltedError, RefoldError. */
  async catchUp(after: number): Promise<Tail> {
    const last = await this.options.ledger.lastSequence();
    if (last < after)
      throw new RefoldError(`the ledger ends at ${last}, but ${after} was folded: it is a restored backup`);
    const entries: Entry[] = [];
    let upTo = after;
    for (;;) {
      const tail = await this.take(upTo);
      entries.push(...tail.entries);
      const progressed = tail.upTo > upTo;
      upTo = tail.upTo;
      if (this.halted !== undefined) throw new HaltedError(this.halted);
      if (upTo >= last) return { entries, upTo };
      if (this.stopped) throw new HaltedError('this copy ends');
      if (progressed) continue;
      const startedMs = monotonicMs();
      await this.arrival.wait(STALLED_MS);
      if (monotonicMs() - startedMs >= STALLED_MS && this.waiting.length === 0) this.start(upTo);
    }
  }

  /** What this copy appended itself, as others will read it. */
  async tailOf(appended: readonly Appended[]): Promise<Tail> {
    const readMs = monotonicMs();
    const entries: Entry[] = [];
    for (const { sequence, fact } of appended) {
      if (this.reads.has(fact.type)) entries.push(await this.withTargets(sequence, readMs, fact));
    }
    return { entries, upTo: (appended.at(-1) as Appended).sequence };
  }

  private receive(message: JsMsg): boolean {
    this.waiting.push(message);
    this.arrival.give();
    if (this.waiting.length >= MANY || this.concerns(message)) this.options.onArrival();
    return this.waiting.length < AHEAD;
  }

  /** What this copy has no use for need not wake it: it is counted with the next that it has. */
  private concerns({ subject }: JsMsg): boolean {
    const type = factTypeOf(subject);
    return type !== undefined && (this.reads.has(type) || type === 'ledger.voided');
  }

  private async entryOf(message: JsMsg, upTo: number, readMs: number): Promise<Entry | undefined | 'halted'> {
    if (message.seq !== upTo + 1) {
      if (this.stuck !== undefined) return this.halt(message.seq, this.stuck.reason, this.stuck);
      throw new RefoldError(
        `the ledger goes on at ${message.seq}, but this copy has folded up to ${upTo}: what lies between was trimmed`,
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
      return this.halt(
        message.seq,
        `sequence ${message.seq} of the ledger (${message.subject}) is not understood: ${error.message}`,
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
    if (sequence <= upTo)
      throw new RefoldError(`sequence ${sequence} of the ledger was declared void after it was folded`);
  }

  /** Stops here, and looks every now and then whether a person voided what is in the way, or put right what it is stuck at. */
  halt(sequence: number, reason: string, stuck?: Stuck): 'halted' {
    if (this.halted !== reason) this.options.logger.error({ sequence }, `halted: ${reason}`);
    this.halted = reason;
    void this.poll(sequence, stuck === undefined ? () => this.mayPass(sequence) : () => this.isFreed(stuck));
    return 'halted';
  }

  private async poll(sequence: number, mayGoOn: () => Promise<boolean>): Promise<void> {
    while (!this.stopped) {
      await pause(growingMs(0, HALT_POLL_MS, HALT_POLL_MS));
      if (!(await mayGoOn().catch(() => false))) continue;
      this.options.logger.warn({ sequence }, 'a person put right what this copy could not take: it goes on');
      this.halted = undefined;
      this.options.onArrival();
      return;
    }
  }

  /** What it read goes on from another place then: the fold begins anew. */
  private async isFreed({ isFreed }: Stuck): Promise<boolean> {
    if (!(await isFreed())) return false;
    this.stuck = undefined;
    return true;
  }

  /** What lies behind it may be void too, and need not stop this copy once more. What lies before was folded: of that each is to be heard. */
  private async mayPass(sequence: number): Promise<boolean> {
    if (!(await this.options.ledger.isVoided(sequence))) return false;
    for (const voided of (await this.readVoided()).keys()) if (voided >= sequence) this.voided.add(voided);
    return true;
  }
}

const voidedSequence = (subject: string): number => Number(subject.split('.').at(-1));
