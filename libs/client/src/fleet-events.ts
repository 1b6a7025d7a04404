import type { JsMsg } from '@nats-io/jetstream';
import { CHANGES, LEDGER, REPORTS } from '#libs/contracts';
import { lastOf, StreamReader, type Bus, type ReadOptions } from '#libs/nats/lean';

/** One message of a stream, as `sluice events` shows it. */
export interface FleetEvent {
  readonly stream: string;
  readonly sequence: number;
  readonly subject: string;
  /** When the server stored it, in RFC 3339. */
  readonly time: string;
  /** The parsed JSON body, or the text if it is not JSON. */
  readonly body: unknown;
}

export interface EventsOptions {
  readonly since?: Date;
  readonly subject?: string;
  readonly follow: boolean;
  readonly signal: AbortSignal;
}

interface Source {
  readonly stream: string;
  readonly reader: StreamReader;
  readonly messages: AsyncIterator<JsMsg>;
  /** The next message, requested but not yet returned. */
  head: Promise<{ readonly source: Source; readonly message: JsMsg | undefined }>;
  /** Sequence of the newest message that must be returned before later ones. */
  readonly last: number;
  hasMore: boolean;
}

/** The messages of the three streams in order of time. With `follow`, then new messages as they arrive. */
export async function* fleetEvents(bus: Bus, options: EventsOptions): AsyncGenerator<FleetEvent> {
  if (options.signal.aborted) return;
  const sources = await Promise.all([CHANGES, REPORTS, LEDGER].map((stream) => openSource(bus, stream, options)));
  const close = (): void => sources.forEach(({ reader }) => reader.close());
  options.signal.addEventListener('abort', close, { once: true });
  try {
    for (
      let stored = sources.filter(({ hasMore }) => hasMore);
      stored.length > 0;
      stored = stored.filter(({ hasMore }) => hasMore)
    ) {
      const heads = await Promise.all(stored.map(({ head }) => head));
      if (options.signal.aborted || heads.some(({ message }) => message === undefined)) return;
      const { source, message } = heads.reduce((a, b) =>
        (a.message as JsMsg).timestampNanos <= (b.message as JsMsg).timestampNanos ? a : b,
      );
      source.hasMore = (message as JsMsg).seq < source.last;
      advance(source);
      yield eventOf(source.stream, message as JsMsg);
    }
    while (options.follow && !options.signal.aborted) {
      const { source, message } = await Promise.race(sources.map(({ head }) => head));
      if (message === undefined) return;
      advance(source);
      yield eventOf(source.stream, message);
    }
  } finally {
    options.signal.removeEventListener('abort', close);
    close();
  }
}

async function openSource(bus: Bus, stream: string, options: EventsOptions): Promise<Source> {
  const reading: ReadOptions = {
    stream,
    since: options.since,
    ...(options.subject === undefined || options.subject === '' ? {} : { filters: [options.subject] }),
  };
  const newest = await bus.whileElecting(() => lastOf(bus, reading));
  const last = newest === undefined || (options.since !== undefined && newest.time < options.since) ? 0 : newest.seq;
  const reader = await bus.whileElecting(() => StreamReader.open(bus, reading));
  const source = { stream, reader, messages: reader[Symbol.asyncIterator](), last, hasMore: last > 0 } as Source;
  advance(source);
  return source;
}

function advance(source: Source): void {
  source.head = source.messages
    .next()
    .then((next) => ({ source, message: next.done === true ? undefined : next.value }));
}

function eventOf(stream: string, message: JsMsg): FleetEvent {
  return { stream, sequence: message.seq, subject: message.subject, time: message.timestamp, body: bodyOf(message) };
}

function bodyOf(message: JsMsg): unknown {
  try {
    return message.json();
  } catch {
    return message.string();
  }
}
