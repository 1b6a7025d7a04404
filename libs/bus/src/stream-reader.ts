import { DeliverPolicy, type Consumer, type ConsumerMessages, type JsMsg } from '@nats-io/jetstream';
import type { Bus } from './connection.js';
import { plainHeaders } from './message-headers.js';
import { messageText } from './message-text.js';

/** A message as handlers get it: text, so that each decodes it as its subject says. */
export interface BusMessage {
  readonly subject: string;
  /** In its stream; 0 for core NATS. */
  readonly sequence: number;
  readonly text: string;
  /** RFC 3339, when the server stored it; empty for core NATS. */
  readonly time: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Reading {
  readonly stream: string;
  /** The first sequence; default: the stream's first. */
  readonly from?: number;
  /** Instead of `from`: the first message stored at or after this time. */
  readonly since?: Date;
  readonly filters?: readonly string[];
  /** Only the newest of each subject, then all that comes. */
  readonly lastPerSubject?: boolean;
  /** How many messages may wait to be read. */
  readonly ahead?: number;
}

/** Short ones: after a server's restart the consumer is made again within two missed heartbeats. */
const EXPIRES_MS = 4_000;
const HEARTBEAT_MS = 1_000;
const DEFAULT_AHEAD = 500;

/** An endless reading of a stream, in order, by a consumer of its own that leaves nothing behind. */
export class StreamReader implements AsyncIterable<JsMsg> {
  private constructor(private readonly consumer: Consumer, private readonly messages: ConsumerMessages, readonly pendingAtStart: number) {}

  static async open(bus: Bus, reading: Reading): Promise<StreamReader> {
    const from = reading.since === undefined ? reading.from : await firstSince(bus, reading, reading.since);
    const start = reading.lastPerSubject === true ? { deliver_policy: DeliverPolicy.LastPerSubject } : { opt_start_seq: Math.max(1, from ?? 1) };
    const filters = reading.filters === undefined ? {} : { filter_subjects: [...reading.filters] };
    const consumer = await bus.unlessLost(() => bus.js.consumers.get(reading.stream, { ...filters, ...start }));
    const messages = await consumer.consume({ max_messages: reading.ahead ?? DEFAULT_AHEAD, expires: EXPIRES_MS, idle_heartbeat: HEARTBEAT_MS });
    return new StreamReader(consumer, messages, (await consumer.info(true)).num_pending);
  }

  [Symbol.asyncIterator](): AsyncIterator<JsMsg> {
    return this.messages[Symbol.asyncIterator]();
  }

  /** Ends the reading; whoever iterates comes to the end. */
  close(): void {
    this.messages.stop();
    void this.consumer.delete().catch(() => undefined);
  }
}

/** Reads what a stream holds now, in order, and ends. */
export async function readAll(bus: Bus, reading: Reading, take: (message: JsMsg) => void): Promise<void> {
  const reader = await StreamReader.open(bus, reading);
  try {
    if (reader.pendingAtStart === 0) return;
    for await (const message of reader) {
      take(message);
      if (message.info.pending === 0) return;
    }
    throw new Error(`the reading of ${reading.stream} ended before its end`);
  } finally {
    reader.close();
  }
}

async function firstSince(bus: Bus, reading: Reading, since: Date): Promise<number> {
  const consumer = await bus.js.consumers.get(reading.stream, {
    ...(reading.filters === undefined ? {} : { filter_subjects: [...reading.filters] }),
    opt_start_time: since.toISOString(),
  });
  try {
    if ((await consumer.info(true)).num_pending === 0) return (await bus.streamInfo(reading.stream)).state.last_seq + 1;
    return (await consumer.next({ expires: 5_000 }))?.seq ?? 1;
  } finally {
    void consumer.delete().catch(() => undefined);
  }
}

export function busMessage(message: JsMsg): BusMessage {
  return { subject: message.subject, sequence: message.seq, text: messageText(message.data), time: message.timestamp, headers: plainHeaders(message) };
}
