import { JetStreamApiError } from '@nats-io/jetstream';
import { errors, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/nats-core';
import { monotonicMs } from '#libs/process';
import { ConnectionLostError } from './errors.js';

/** A stream's answer to a published message. */
export interface StreamAnswer {
  readonly seq: number;
  /** For a batch: how many messages it has. */
  readonly count: number;
}

/** Called once, with the stream's answer, or with the error if there is none. */
type AnswerCallback = (answer: StreamAnswer | Error) => void;

interface PendingAnswer {
  readonly callback: AnswerCallback;
  readonly sinceMs: number;
}

const SWEEP_MS = 250;

/**
 * Publishes to streams and receives their answers on one subscription, for writers with thousands of messages in
 * flight. The client's own `publish` creates an error with a trace, a timer and a chain of promises for each message,
 * which is half of the cost.
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
      // Not at once: a publisher does not expect an answer before it has continued.
      queueMicrotask(() => this.answer(token, error as Error));
    }
  }

  /** The connection is gone, so answers to what was sent cannot arrive any more. */
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
    const entry = this.pending.get(token);
    if (entry === undefined) return;
    this.pending.delete(token);
    entry.callback(answer);
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
    // The answer to the first message of a batch is empty. If a subject has no stream, the server itself answers.
    return message.headers?.code === 503 ? new errors.NoRespondersError(message.subject) : { seq: 0, count: 0 };
  }
  try {
    const { seq, count, error } = JSON.parse(message.string()) as Answer;
    return error === undefined ? { seq: seq ?? 0, count: count ?? 1 } : new JetStreamApiError(error);
  } catch (error) {
    return error as Error;
  }
}
