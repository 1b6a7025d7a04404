import { nuid, type MsgHdrs } from '@nats-io/nats-core';
import { JetStreamApiError } from '@nats-io/jetstream';
import { decodeFact, encodeFact, factSubject, LEDGER, type Fact, type NewFact } from '#libs/contracts';
import { monotonicMs, wallTime } from '#libs/process';
import type { StreamAnswer } from './ack-inbox.js';
import type { Bus } from './connection.js';
import { isConnectionTrouble, NoLeaderError, REFUSALS } from './errors.js';
import { headersOf } from './messages.js';

/** A fact as it was appended. */
export interface AppendedFact {
  readonly sequence: number;
  readonly fact: Fact;
}

/** The result of an append. `unclear`: the facts may be there. After `refused`, some of separate facts may be there. */
export type AppendOutcome =
  | { readonly outcome: 'appended'; readonly appended: readonly AppendedFact[] }
  | { readonly outcome: 'refused' | 'unclear'; readonly reason: string };

/** The number of replicas can change at any time, so it is read again after this time. */
const LOOK_MS = 10_000;

/** The one ordered list of facts. Only a writer that has seen all of it can append. */
export class Ledger {
  private replicas: number | undefined;
  private lookedMs = 0;

  constructor(private readonly bus: Bus) {}

  /**
   * Appends the facts together if the ledger still ends at `expectedLast`. With `separate`, and if that is cheaper,
   * appends each only if it directly follows the one before it. Throws for facts that the server can never accept.
   */
  async append(facts: readonly NewFact[], expectedLast: number, separate = false): Promise<AppendOutcome> {
    const at = wallTime();
    const messages = facts.map((fact) => ({ subject: factSubject(fact), text: encodeFact(fact, at) }));
    // Decode before writing: a fact that cannot be decoded would stop every reader.
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

  /** The last sequence of the ledger, as the stream's leader has it. */
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
   * Each replica checks the id of the previous message on its own. A replica that restarted may know another id, and
   * drop what the others keep (ADR 30). So a ledger with replicas gets batches.
   */
  private async isUnreplicated(): Promise<boolean> {
    if (this.replicas === undefined || monotonicMs() - this.lookedMs > LOOK_MS) await this.bounds();
    return this.replicas === 1;
  }

  /**
   * Sends all at once. Each names the message before it: with the sequence alone, the second could follow a foreign
   * fact that has the sequence of the first.
   */
  private async appendSeparately(messages: readonly Message[], expectedLast: number): Promise<number> {
    const id = nuid.next();
    const publishes = messages.map(({ subject, text }, index) => {
      const head = headersOf({ 'Nats-Expected-Last-Sequence': String(expectedLast + index) });
      if (index > 0) head.set('Nats-Expected-Last-Msg-Id', `${id}.${index - 1}`);
      if (index < messages.length - 1) head.set('Nats-Msg-Id', `${id}.${index}`);
      return this.answerTo(subject, text, head);
    });
    const answers = await Promise.allSettled(publishes);
    const failed = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []));
    // If one of them is unclear, all are.
    if (failed.length > 0) throw failed.find(isConnectionTrouble) ?? failed[0];
    const isElsewhere = answers.some(
      (answer, i) => answer.status === 'fulfilled' && answer.value.seq !== expectedLast + 1 + i,
    );
    if (isElsewhere) throw new NoLeaderError('the server stored facts at other sequences than requested');
    return expectedLast + messages.length;
  }

  private answerTo(subject: string, text: string, head: MsgHdrs): Promise<StreamAnswer> {
    return new Promise((resolve, reject) =>
      this.bus.store(subject, text, head, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
    );
  }

  /** Does not use the client's batch publisher, which hides the server's reason behind its own message. */
  private async appendBatch(messages: readonly Message[], expectedLast: number): Promise<number> {
    const id = nuid.next();
    const headOf = (index: number): MsgHdrs =>
      headersOf({
        'Nats-Batch-Id': id,
        'Nats-Batch-Sequence': String(index + 1),
        ...(index === 0 ? { 'Nats-Expected-Last-Sequence': String(expectedLast) } : {}),
        ...(index === messages.length - 1 ? { 'Nats-Batch-Commit': '1' } : {}),
      });
    // Waits for all: the answer to the first message has the reason of a refusal; the last answer only says that the
    // batch is incomplete.
    const store = (index: number): Promise<StreamAnswer> => {
      const { subject, text } = messages[index] as Message;
      return this.answerTo(subject, text, headOf(index));
    };
    const first = store(0);
    // On a closed connection, publishing the next message throws, and the promise of the first is not awaited.
    first.catch(() => undefined);
    for (const [index, { subject, text }] of messages.slice(1, -1).entries())
      this.bus.nc.publish(subject, text, { headers: headOf(index + 1) });
    const last = store(messages.length - 1);
    last.catch(() => undefined);
    await first;
    const { seq, count } = await last;
    if (count !== messages.length) throw new Error(`the server stored only ${count} of ${messages.length} facts`);
    return seq;
  }
}

interface Message {
  readonly subject: string;
  readonly text: string;
}

function outcomeOf(error: unknown): AppendOutcome {
  if (error instanceof JetStreamApiError && REFUSALS.has(error.code))
    return { outcome: 'refused', reason: error.message };
  if (isConnectionTrouble(error)) return { outcome: 'unclear', reason: (error as Error).message };
  throw error;
}
