import {
  DeliverPolicy,
  jetstream,
  type Consumer,
  type ConsumerMessages,
  type JsMsg,
  type OrderedConsumerOptions,
  type StoredMsg,
} from '@nats-io/jetstream';
import { errors } from '@nats-io/nats-core';
import { monotonicMs, Slices } from '#libs/process';
import type { Bus } from './connection.js';
import { growingMs, pause } from './signal.js';

export interface ReadOptions {
  readonly stream: string;
  /** The first sequence; default: the stream's first. */
  readonly from?: number;
  /** Instead of `from`: the first message stored at or after this time. */
  readonly since?: Date | undefined;
  readonly filters?: readonly string[];
  /** Only the newest message of each subject, then all new messages. */
  readonly lastPerSubject?: boolean;
  readonly ahead?: number;
  readonly headersOnly?: boolean;
}

/** Short, so that the consumer is recreated soon after a server restart: after two missed heartbeats. */
const EXPIRES_MS = 4_000;
const HEARTBEAT_MS = 1_000;
/** How long a consumer may miss heartbeats before it is suspect, and how often to check. */
const SILENT_MS = 4_000;
const LOOK_MS = 1_000;
/** How often `readAll` checks that the last message still exists. */
const GONE_MS = 1_000;
const DEFAULT_AHEAD = 500;
/** The share of a request's timeout that each try gets. Together they take no longer than the timeout. */
const ANSWER_SHARES = [0.1, 0.15, 0.25, 0.5];

/**
 * Reads a stream forever, in order, with an ephemeral consumer. In a cluster the consumer dies with its server, without
 * an error: without heartbeats, the reader recreates it and continues where it was.
 */
export class StreamReader implements AsyncIterable<JsMsg> {
  private lastSequence = 0;
  private closed = false;
  private signMs = monotonicMs();
  private isSuspect = false;
  private received = 0;
  private readonly watch: NodeJS.Timeout;

  private constructor(
    private readonly bus: Bus,
    private readonly reading: ReadOptions,
    private current: ActiveConsumer,
  ) {
    this.listen(current);
    this.watch = setInterval(() => this.look(), LOOK_MS);
    this.watch.unref();
  }

  static async open(bus: Bus, reading: ReadOptions): Promise<StreamReader> {
    return new StreamReader(bus, reading, await beginConsuming(bus, reading, 0));
  }

  async *[Symbol.asyncIterator](): AsyncIterator<JsMsg> {
    try {
      while (!this.closed) {
        for await (const message of this.current.messages) {
          this.lastSequence = message.seq;
          yield message;
        }
        await this.recreate();
      }
    } finally {
      clearInterval(this.watch);
    }
  }

  close(): void {
    this.closed = true;
    clearInterval(this.watch);
    end(this.current);
  }

  private sign(): void {
    this.signMs = monotonicMs();
    this.isSuspect = false;
  }

  private listen({ messages }: ActiveConsumer): void {
    void (async () => {
      for await (const { type } of messages.status()) if (type === 'heartbeat') this.sign();
    })();
  }

  /** Checks twice, because a busy process receives what arrived meanwhile only after the first check. */
  private look(): void {
    const received = this.current.messages.getReceived();
    if (!this.bus.connected || received !== this.received) this.sign();
    this.received = received;
    if (monotonicMs() - this.signMs < SILENT_MS) return;
    if (this.isSuspect) {
      this.bus.logger.warn(
        { stream: this.reading.stream, from: this.lastSequence + 1 },
        'consumer stalled; recreating it',
      );
      this.sign();
      end(this.current); // ends its iteration, and the next one begins
    } else this.isSuspect = true;
  }

  private async recreate(): Promise<void> {
    for (let tries = 0; !this.closed; tries += 1) {
      try {
        const current = await beginConsuming(this.bus, this.reading, this.lastSequence);
        if (this.closed) return end(current);
        this.current = current;
        this.sign();
        return this.listen(current);
      } catch (error) {
        this.sign();
        this.bus.logger.debug({ error, stream: this.reading.stream }, 'the consumer could not be recreated');
        await pause(growingMs(tries, 50, 5_000));
      }
    }
  }
}

interface ActiveConsumer {
  readonly consumer: Consumer;
  readonly messages: ConsumerMessages;
}

/** Starts at the beginning of the reading, or after the last message that was read. */
async function beginConsuming(bus: Bus, reading: ReadOptions, after: number): Promise<ActiveConsumer> {
  const consumer = await orderedConsumer(bus, reading, {
    headers_only: reading.headersOnly === true,
    ...(await startOf(bus, reading, after)),
  });
  const messages = await consumer.consume({
    max_messages: reading.ahead ?? DEFAULT_AHEAD,
    expires: EXPIRES_MS,
    idle_heartbeat: HEARTBEAT_MS,
  });
  return { consumer, messages };
}

async function startOf(bus: Bus, reading: ReadOptions, after: number): Promise<Partial<OrderedConsumerOptions>> {
  if (after > 0) return { opt_start_seq: after + 1 };
  if (reading.lastPerSubject === true) return { deliver_policy: DeliverPolicy.LastPerSubject };
  const from = reading.since === undefined ? reading.from : await firstSince(bus, reading, reading.since);
  return { opt_start_seq: Math.max(1, from ?? 1) };
}

function end({ consumer, messages }: ActiveConsumer): void {
  messages.stop();
  void consumer.delete().catch(() => undefined);
}

/**
 * Reads the current messages of a stream, up to the last message that its leader has, because other servers may lag.
 */
export async function readAll(
  bus: Bus,
  reading: Omit<ReadOptions, 'since'>,
  take: (message: JsMsg) => void,
): Promise<void> {
  const last = await lastOf(bus, reading);
  if (last === undefined || last.seq < (reading.from ?? 1)) return;
  const reader = await StreamReader.open(bus, reading);
  const slices = new Slices();
  let [count, isAtEnd] = [0, false];
  // The last message may have been deleted or have expired meanwhile. Then it never arrives.
  const watch = setInterval(() => {
    const before = count;
    lastOf(bus, reading).then(
      (now) => {
        if (count !== before || (now?.seq ?? 0) > before) return;
        isAtEnd = true;
        reader.close();
      },
      () => undefined,
    );
  }, GONE_MS);
  try {
    for await (const message of reader) {
      await slices.pause();
      take(message);
      count = message.seq;
      if (message.seq >= last.seq) return;
    }
    if (!isAtEnd) throw new Error(`reading ${reading.stream} stopped before the end`);
  } finally {
    clearInterval(watch);
    reader.close();
  }
}

/** The newest message that matches, as the stream's leader has it; undefined if there is none. */
export async function lastOf(bus: Bus, { stream, filters }: ReadOptions): Promise<StoredMsg | undefined> {
  const last = await lastOfEach(bus, stream, filters ?? ['>']);
  if (last !== undefined || filters !== undefined) return last;
  // For `>`, a server checks only the last sequence, and finds nothing if that message was deleted.
  const { config, state } = await bus.streamInfo(stream);
  return state.messages === 0 ? undefined : lastOfEach(bus, stream, config.subjects ?? []);
}

async function lastOfEach(bus: Bus, stream: string, filters: readonly string[]): Promise<StoredMsg | undefined> {
  const messages = await Promise.all(filters.map((filter) => bus.stored(stream, { last_by_subj: filter })));
  return messages.reduce<StoredMsg | undefined>(
    (last, message) => (message !== null && message.seq > (last?.seq ?? 0) ? message : last),
    undefined,
  );
}

async function firstSince(bus: Bus, reading: ReadOptions, since: Date): Promise<number> {
  const consumer = await orderedConsumer(bus, reading, { opt_start_time: since.toISOString() });
  try {
    if ((await consumer.info(true)).num_pending === 0) return (await bus.streamInfo(reading.stream)).state.last_seq + 1;
    return (await consumer.next({ expires: 5_000 }))?.seq ?? 1;
  } finally {
    void consumer.delete().catch(() => undefined);
  }
}

/**
 * Tries again under another name if no answer comes soon. For minutes after a server was killed, the others still place
 * consumers on it, and such requests are never answered.
 */
async function orderedConsumer(
  bus: Bus,
  { stream, filters }: ReadOptions,
  options: Partial<OrderedConsumerOptions>,
): Promise<Consumer> {
  const filtered = filters === undefined ? options : { ...options, filter_subjects: [...filters] };
  for (const [tries, share] of ANSWER_SHARES.entries()) {
    try {
      const js = jetstream(bus.nc, { timeout: Math.round(bus.timeoutMs * share) });
      // a copy, because the client writes the consumer's name into it
      return await bus.unlessLost(() => js.consumers.get(stream, { ...filtered }));
    } catch (error) {
      if (!(error instanceof errors.TimeoutError) || tries === ANSWER_SHARES.length - 1) throw error;
    }
  }
  throw new Error('there is a last try');
}
