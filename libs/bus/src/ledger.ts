import { errors, headers, nuid, type MsgHdrs } from '@nats-io/nats-core';
import { JetStreamApiError } from '@nats-io/jetstream';
import { decodeFact, encodeFact, factSubject, LEDGER, type Fact, type NewFact } from '#libs/contracts';
import { monotonicMs, wallTime } from '#libs/runtime';
import { header, type StreamAnswer } from './ack-inbox.js';
import type { Bus } from './connection.js';
import { ConnectionLostError, NoLeaderError } from './errors.js';

/** A fact as it was appended. */
export interface Appended {
  readonly sequence: number;
  readonly fact: Fact;
}

/** What an append came to. After `unclear` it may have happened or not, and of separate facts some may stand after `refused`: the tail tells. */
export type Append =
  | { readonly outcome: 'appended'; readonly appended: readonly Appended[] }
  | { readonly outcome: 'refused' | 'unclear'; readonly reason: string };

/** The server's own codes: wrong last message, wrong last sequence (two of them), and a batch of which a part was lost. What was refused was not appended. */
export const REFUSALS: ReadonlySet<number> = new Set([10070, 10071, 10164, 10176]);

/** Copies of a stream can be made more at any time: this is looked at again after so long. */
const LOOK_MS = 10_000;

/** The one ordered list of facts: appended to only by who has seen all that is in it, and all or nothing where facts belong together. */
export class Ledger {
  private replicas: number | undefined;
  private lookedMs = 0;

  constructor(private readonly bus: Bus) {}

  /**
   * Appends the facts together, if the ledger still ends at `expectedLast`; or, where they are `separate` and that is cheaper, each
   * only if the one before it was appended and nothing else since. Throws when the server takes such facts never.
   */
  async append(facts: readonly NewFact[], expectedLast: number, separate = false): Promise<Append> {
    const at = wallTime();
    const messages = facts.map((fact) => ({ subject: factSubject(fact), text: encodeFact(fact, at) }));
    // Read back before it is written: a fact that nobody can decode would stop every reader.
    const read = messages.map(({ subject, text }) => decodeFact(subject, text));
    try {
      const isBatch = messages.length > 1 && !(separate && (await this.isUnreplicated()));
      const last = await (isBatch
        ? this.appendBatch(messages, expectedLast)
        : this.appendSeparately(messages, expectedLast));
      return { outcome: 'appended', appended: read.map((fact, i) => ({ fact, sequence: last - read.length + 1 + i })) };
    } catch (error) {
      return outcomeOf(error);
    }
  }

  /** Where the ledger ends, as the stream's leader says. */
  async lastSequence(): Promise<number> {
    return (await this.bounds()).last;
  }

  async bounds(): Promise<{ readonly first: number; readonly last: number }> {
    const { state, config } = await this.bus.streamInfo(LEDGER);
    this.replicas = config.num_replicas;
    this.lookedMs = monotonicMs();
    return { first: state.first_seq, last: state.last_seq };
  }

  /** Whether a person declared the fact with this sequence void. */
  async isVoided(sequence: number): Promise<boolean> {
    const declared = await this.bus.stored(LEDGER, { last_by_subj: `ledger.voided.${sequence}` });
    return declared !== null && declared.seq > sequence;
  }

  /**
   * Replicas judge the id of the message before each for themselves, when they apply what was agreed on; one that was restarted
   * may know another and drop what the others keep (docs/adr/0030). So a ledger with replicas gets batches.
   */
  private async isUnreplicated(): Promise<boolean> {
    if (this.replicas === undefined || monotonicMs() - this.lookedMs > LOOK_MS) await this.bounds();
    return this.replicas === 1;
  }

  /**
   * All are sent at once. The sequence alone would not do: where another's fact comes first, the second of these would find
   * the ledger's end where it expects it, without the first; so each names the message before it, too.
   */
  private async appendSeparately(messages: readonly Message[], expectedLast: number): Promise<number> {
    const id = nuid.next();
    const stored = messages.map(({ subject, text }, index) => {
      const head = header('Nats-Expected-Last-Sequence', String(expectedLast + index));
      if (index > 0) head.set('Nats-Expected-Last-Msg-Id', `${id}.${index - 1}`);
      if (index < messages.length - 1) head.set('Nats-Msg-Id', `${id}.${index}`);
      return this.answerTo(subject, text, head);
    });
    const answers = await Promise.allSettled(stored);
    const failed = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []));
    // Where one of them is unclear, so is the whole.
    if (failed.length > 0) throw failed.find(isConnectionTrouble) ?? failed[0];
    const isElsewhere = answers.some(
      (answer, i) => answer.status === 'fulfilled' && answer.value.seq !== expectedLast + 1 + i,
    );
    if (isElsewhere) throw new NoLeaderError('the server stored facts at other places than it was asked to');
    return expectedLast + messages.length;
  }

  private answerTo(subject: string, text: string, head: MsgHdrs): Promise<StreamAnswer> {
    return new Promise((resolve, reject) =>
      this.bus.store(subject, text, head, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
    );
  }

  /** By hand and not by the client's batch publisher, which hides the server's reason behind a text of its own. */
  private async appendBatch(messages: readonly Message[], expectedLast: number): Promise<number> {
    const id = nuid.next();
    const headersOf = (index: number): ReturnType<typeof headers> => {
      const batch = headers();
      batch.set('Nats-Batch-Id', id);
      batch.set('Nats-Batch-Sequence', String(index + 1));
      if (index === 0) batch.set('Nats-Expected-Last-Sequence', String(expectedLast));
      if (index === messages.length - 1) batch.set('Nats-Batch-Commit', '1');
      return batch;
    };
    // All at once: what the first is refused for, the server says of the first; of the last it says no more than that the batch is not whole.
    const store = (index: number): Promise<StreamAnswer> => {
      const { subject, text } = messages[index] as Message;
      return this.answerTo(subject, text, headersOf(index));
    };
    const first = store(0);
    // A connection that was closed throws at the next message already, and nobody waits for the first then.
    first.catch(() => undefined);
    for (const [index, { subject, text }] of messages.slice(1, -1).entries())
      this.bus.nc.publish(subject, text, { headers: headersOf(index + 1) });
    const last = store(messages.length - 1);
    last.catch(() => undefined);
    await first;
    const { seq, count } = await last;
    if (count !== messages.length) throw new Error(`the server took ${count} of ${messages.length} facts`);
    return seq;
  }
}

interface Message {
  readonly subject: string;
  readonly text: string;
}

function outcomeOf(error: unknown): Append {
  if (error instanceof JetStreamApiError && REFUSALS.has(error.code))
    return { outcome: 'refused', reason: error.message };
  if (isConnectionTrouble(error)) return { outcome: 'unclear', reason: (error as Error).message };
  throw error;
}

/** Whether the server may or may not have done what it was asked: it was away, or did not answer in time. */
export function isConnectionTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.cause !== undefined && isConnectionTrouble(error.cause)) return true;
  // What a server says whose cluster has no majority, or no leader yet.
  if (error instanceof JetStreamApiError) return error.status === 503;
  return (
    error instanceof ConnectionLostError ||
    error instanceof NoLeaderError ||
    error instanceof errors.TimeoutError ||
    error instanceof errors.RequestError ||
    error instanceof errors.NoRespondersError ||
    error instanceof errors.ConnectionError ||
    error instanceof errors.ClosedConnectionError ||
    error instanceof errors.DrainingConnectionError ||
    /disconnect|timeout|no responders/i.test(error.message)
  );
}
