import type { JsMsg } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/nats-core';
import type { Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { UnavailableError } from './errors.js';
import { busMessage, messageText, plainHeaders, type BusMessage } from './messages.js';
import { growingMs, pause, Signal } from './signal.js';
import { StreamReader } from './stream-reader.js';

/** The source of an input: the second argument of `@EventPattern(subject, …)`. */
export interface InputSource {
  /** The stream to read. The pattern filters it, unless `filters` is set. */
  readonly stream?: string;
  /**
   * None (`[]`): the whole stream. If there are several, the server compares each with every subject of a block for
   * each message that it searches. With a subject for each node, that was half of its work at 100,000 nodes.
   */
  readonly filters?: readonly string[];
  /** Start after the last message that was processed according to the ledger. Without it, at the stream's start. */
  readonly from?: 'cursor';
  /** Start with the newest message of each subject. */
  readonly deliver?: 'last-per-subject';
  /** Core NATS instead of a stream, with the same filters. Messages without a subscriber are lost. */
  readonly core?: true;
}

export interface InputStreamOptions {
  readonly bus: Bus;
  readonly subject: string;
  readonly source: InputSource;
  /** Starts after this sequence. */
  readonly cursor: number;
  /** The batch counts as processed once the promise resolves. */
  readonly handle: (batch: readonly BusMessage[]) => Promise<void>;
  readonly logger: Logger;
}

/** Messages delivered together. Twice as many are read ahead, so that the next batch is ready. */
const BATCH = 500;
/** The most bytes in a batch, unless it is a single message: a change may have nearly a megabyte. */
const BATCH_BYTES = 4 * 2 ** 20;
/** The most heartbeats that are queued: older ones are stale anyway. */
const MOST_UNSTORED = 20_000;
/** Messages that are not stored are not answered. */
const UNSTORED_EVERY_MS = 250;

/**
 * One input of a leader, in order and in batches. Its position is only in the ledger: there is no durable consumer, and
 * no acknowledgement that a crash could lose. A batch that fails is delivered again, with growing pauses.
 */
export class InputStream {
  private stopped = false;
  private close: () => void = () => undefined;

  constructor(private readonly options: InputStreamOptions) {}

  start(): void {
    if (this.options.source.core === true) this.listen();
    else void this.follow();
  }

  stop(): void {
    this.stopped = true;
    this.close();
  }

  private async follow(): Promise<void> {
    let position = this.options.source.from === 'cursor' ? this.options.cursor : 0;
    for (let failures = 0; !this.stopped; failures += 1) {
      try {
        for await (const batch of this.batches(position)) {
          await this.options.handle(batch.map(busMessage));
          position = (batch.at(-1) as JsMsg).seq;
          failures = 0;
        }
      } catch (error) {
        if (!this.tell(error, failures)) return;
      }
      await pause(growingMs(failures, 200, 10_000));
    }
  }

  private async *batches(position: number): AsyncGenerator<readonly JsMsg[]> {
    const { bus, subject, source } = this.options;
    const isLast = source.deliver === 'last-per-subject' && position === 0;
    const reader = await StreamReader.open(bus, {
      stream: source.stream as string,
      ...(source.filters?.length === 0 ? {} : { filters: source.filters ?? [subject] }),
      ...(isLast ? { lastPerSubject: true } : { from: position + 1 }),
      ahead: BATCH,
    });
    this.close = () => reader.close();
    if (this.stopped) return reader.close();
    yield* collect(reader, BATCH);
  }

  private listen(): void {
    const waiting: BusMessage[] = [];
    const arrival = new Signal();
    const { bus, subject, source } = this.options;
    const callback = (error: Error | null, message: Msg): void => {
      if (error !== null) return;
      if (waiting.length >= MOST_UNSTORED) waiting.shift();
      waiting.push({
        subject: message.subject,
        sequence: 0,
        text: messageText(message.data),
        time: '',
        headers: plainHeaders(message),
      });
      arrival.give();
    };
    const subscriptions = (source.filters ?? [subject]).map((filter) => bus.nc.subscribe(filter, { callback }));
    this.close = () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
      arrival.give();
    };
    void this.drainUnstored(waiting, arrival);
  }

  private async drainUnstored(waiting: BusMessage[], arrival: Signal): Promise<void> {
    for (let failures = 0; !this.stopped;) {
      if (waiting.length === 0) await arrival.wait();
      // Ten thousand nodes send a thousand heartbeats per second. Delivering each one separately would cost more than
      // reading it.
      await pause(UNSTORED_EVERY_MS);
      const batch = waiting.splice(0, MOST_UNSTORED);
      if (batch.length === 0) continue;
      try {
        await this.options.handle(batch);
        failures = 0;
      } catch (error) {
        if (!this.tell(error, failures)) return;
        await pause(growingMs(failures++, 200, 10_000));
      }
    }
  }

  private tell(error: unknown, failures: number): boolean {
    if (this.stopped || error instanceof UnavailableError) return !this.stopped;
    this.options.logger.error(
      { error, subject: this.options.subject, failures },
      'an input could not be processed; trying again',
    );
    return true;
  }
}

/** Yields batches of the messages received so far. Reads ahead while a batch is being handled. */
async function* collect(reader: StreamReader, most: number): AsyncGenerator<readonly JsMsg[]> {
  const waiting: JsMsg[] = [];
  const [arrival, room] = [new Signal(), new Signal()];
  let waitingBytes = 0;
  let ended: { readonly error: unknown } | undefined;
  const isFull = (): boolean => waiting.length >= 2 * most || waitingBytes >= 2 * BATCH_BYTES;
  const fill = async (): Promise<void> => {
    for await (const message of reader) {
      waiting.push(message);
      waitingBytes += message.data.length;
      arrival.give();
      while (isFull() && ended === undefined) await room.wait();
    }
  };
  const end = (error: unknown): void => {
    ended ??= { error };
    arrival.give();
  };
  void fill().then(() => end(undefined), end);
  try {
    for (;;) {
      while (waiting.length === 0 && ended === undefined) await arrival.wait();
      if (waiting.length === 0) {
        if (ended?.error !== undefined) throw ended.error;
        return;
      }
      const batch = waiting.splice(0, countWithin(waiting, most));
      waitingBytes -= batch.reduce((sum, { data }) => sum + data.length, 0);
      room.give();
      yield batch;
    }
  } finally {
    ended ??= { error: undefined };
    room.give();
    reader.close();
  }
}

/** How many messages from the start of the list fit into one batch; at least one. */
function countWithin(messages: readonly JsMsg[], most: number): number {
  let bytes = 0;
  const at = messages.findIndex(({ data }, i) => i >= most || ((bytes += data.length) > BATCH_BYTES && i > 0));
  return at === -1 ? messages.length : at;
}
