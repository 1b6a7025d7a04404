import { JetStreamApiError } from '@nats-io/jetstream';
import { errors, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/nats-core';
import { monotonicMs } from '#libs/process';
import { ConnectionLostError } from './errors.js';

/** What a stream says to a message that was published to it. */
export interface StreamAnswer {
  readonly seq: number;
  /** Of a batch: how many messages it took. */
  readonly count: number;
}

/** Called once: with the stream's answer, or with the error that it answered or that befell the message. */
type AnswerCallback = (answer: StreamAnswer | Error) => void;

interface PendingAnswer {
  readonly callback: AnswerCallback;
  readonly sinceMs: number;
}

const SWEEP_MS = 250;

/**
 * Publishes to streams and takes their answers from one subscription, for writers with thousands of messages under way.
 * The client's own `publish` makes an error with a trace, a timer and a chain of promises for each: half of the cost.
 */
export class AckInbox {
  private readonly inbox: string;
  /** In the order in which they were sent. */
  private readonly pending = new Map<string, PendingAnswer>();
  private next = 0;
  private sweeper: NodeJS.Timeout | undefined;
  private listening = false;

  constructor(
    private readonly nc: NatsConnection,
    private readonly timeoutMs: number,
    inbox: string,
  ) {
    this.inbox = `${inbox}.`;
  }

  publish(subject: string, text: string, head: MsgHdrs, callback: AnswerCallback): void {
    if (!this.listening) this.listen();
    const token = (this.next++).toString(36);
    this.pending.set(token, { callback, sinceMs: monotonicMs() });
    this.sweeper ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
    try {
      this.nc.publish(subject, text, { reply: this.inbox + token, headers: head });
    } catch (error) {
      // Not at once: who publishes does not expect an answer before it has gone on.
      queueMicrotask(() => this.answer(token, error as Error));
    }
  }

  /** The connection is gone: answers to what was sent cannot come any more. */
  lose(): void {
    for (const token of [...this.pending.keys()])
      this.answer(token, new ConnectionLostError('the connection to the server was lost'));
  }

  private listen(): void {
    this.listening = true;
    this.nc.subscribe(`${this.inbox}*`, {
      callback: (error, message) => {
        if (error !== null) return;
        this.answer(message.subject.slice(this.inbox.length), answerOf(message));
      },
    });
  }

  private answer(token: string, answer: StreamAnswer | Error): void {
    const found = this.pending.get(token);
    if (found === undefined) return;
    this.pending.delete(token);
    found.callback(answer);
  }

  private sweep(): void {
    const oldestMs = monotonicMs() - this.timeoutMs;
    for (const [token, { sinceMs }] of this.pending) {
      if (sinceMs > oldestMs) break;
      this.answer(token, new errors.TimeoutError());
    }
    if (this.pending.size > 0) return;
    clearInterval(this.sweeper);
    this.sweeper = undefined;
  }
}

interface Answer {
  readonly seq?: number;
  readonly count?: number;
  readonly error?: { readonly code: number; readonly err_code: number; readonly description: string };
}

function answerOf(message: Msg): StreamAnswer | Error {
  if (message.data.length === 0) {
    // The first of a batch is answered with nothing, and a subject without a stream by the server itself.
    return message.headers?.code === 503 ? new errors.NoRespondersError(message.subject) : { seq: 0, count: 0 };
  }
  try {
    const { seq, count, error } = JSON.parse(message.string()) as Answer;
    return error === undefined ? { seq: seq ?? 0, count: count ?? 1 } : new JetStreamApiError(error);
  } catch (error) {
    return error as Error;
  }
}
