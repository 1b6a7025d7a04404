import type { JsMsg } from '@nats-io/jetstream';
import {
  decodeView,
  nodeOfToken,
  nodeToken,
  VIEW_BUCKETS,
  WireError,
  type ViewBucket,
  type ViewValues,
} from '#libs/contracts';
import type { Bus } from './connection.js';
import { isDeletion, isStoredDeletion } from './messages.js';
import { readAll, StreamReader } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';

/** Keys of these buckets are nodes, whose dots would split a subject token. */
const NODE_BUCKETS: ReadonlySet<string> = new Set<ViewBucket>(['nodes', 'leases', 'status', 'drains', 'bindings']);
/** A view's key as it is stored in its bucket. */
export const bucketKey = (bucket: string, key: string): string => (NODE_BUCKETS.has(bucket) ? nodeToken(key) : key);

/** The same key as its service knows it. */
export const shownKey = (bucket: string, stored: string): string =>
  NODE_BUCKETS.has(bucket) ? nodeOfToken(stored) : stored;

export interface ViewEntry<B extends ViewBucket> {
  readonly key: string;
  readonly value: ViewValues[B];
}

/** The value of one key as the stream's leader has it. The key of a node is its name, including dots. */
export async function readView<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  key: string,
): Promise<ViewValues[B] | undefined> {
  const message = await bus.stored(kvStream(bucket), { last_by_subj: kvSubject(bucket, bucketKey(bucket, key)) });
  return message === null || isStoredDeletion(message) ? undefined : decodeView(bucket, message.string());
}

/**
 * The value of one key as any server of the stream has it, which may lag. The key is in the subject of the request, so
 * permissions can name it.
 */
export async function readNearbyView<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  key: string,
): Promise<ViewValues[B] | undefined> {
  const message = await bus.nearest(kvStream(bucket), kvSubject(bucket, bucketKey(bucket, key)));
  return message === null || isStoredDeletion(message) ? undefined : decodeView(bucket, message.string());
}

/** Every value of a bucket, by key. Unreadable values are left out. */
export async function listViews<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
): Promise<ReadonlyMap<string, ViewValues[B]>> {
  const values = new Map<string, ViewValues[B]>();
  await readAll(bus, { stream: kvStream(bucket), lastPerSubject: true, ahead: 2_000 }, (message) => {
    const entry = entryOf(bucket, message);
    if (entry !== undefined) values.set(entry.key, entry.value);
  });
  return values;
}

/** Yields current values first, then every change, until the signal aborts. `deleted` gets each key that is deleted. */
export async function* watchViews<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  keys: string,
  signal: AbortSignal,
  deleted: (key: string) => void = () => undefined,
): AsyncGenerator<ViewEntry<B>> {
  if (signal.aborted) return;
  const filter = keys === '' || keys === '*' || keys === '>' ? '>' : bucketKey(bucket, keys);
  const reading = { stream: kvStream(bucket), filters: [kvSubject(bucket, filter)], lastPerSubject: true };
  const reader = await bus.whileElecting(() => StreamReader.open(bus, reading));
  const close = (): void => reader.close();
  signal.addEventListener('abort', close, { once: true });
  // The signal may have aborted while the reader opened; a listener added later is not called.
  if (signal.aborted) close();
  try {
    for await (const message of reader) {
      if (signal.aborted) return;
      if (isDeletion(message)) deleted(keyOf(bucket, message));
      const entry = entryOf(bucket, message);
      if (entry !== undefined) yield entry;
    }
  } finally {
    signal.removeEventListener('abort', close);
    reader.close();
  }
}

const keyOf = (bucket: ViewBucket, { subject }: JsMsg): string =>
  shownKey(bucket, subject.slice(kvSubject(bucket, '').length));

function entryOf<B extends ViewBucket>(bucket: B, message: JsMsg): ViewEntry<B> | undefined {
  if (isDeletion(message)) return undefined;
  try {
    return { key: keyOf(bucket, message), value: decodeView(bucket, message.string()) };
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

/**
 * The ledger sequence of each bucket's newest value. If it is above the end of the ledger, the ledger was restored from
 * a backup.
 */
export async function newestViews(bus: Bus): Promise<ReadonlyMap<ViewBucket, number>> {
  const ledgers = await Promise.all(VIEW_BUCKETS.map(async (bucket) => [bucket, await newestOf(bus, bucket)] as const));
  return new Map(ledgers);
}

async function newestOf(bus: Bus, bucket: ViewBucket): Promise<number> {
  const { state } = await bus.streamInfo(kvStream(bucket));
  if (state.messages === 0) return 0;
  const message = await bus.stored(kvStream(bucket), { seq: state.last_seq });
  return message === null ? 0 : sequenceShown(message.string());
}

function sequenceShown(text: string): number {
  try {
    return shownSequence((JSON.parse(text) as { readonly ledger?: unknown } | null)?.ledger);
  } catch {
    return 0;
  }
}

/** The ledger sequence in one value, as the stream's leader has it. */
export async function sequenceAt(bus: Bus, bucket: string, subject: string): Promise<number> {
  const message = await bus.stored(kvStream(bucket), { last_by_subj: subject });
  return message === null ? 0 : sequenceShown(message.string());
}

/** The ledger sequence in a value. If it is not a number, something other than Sluice wrote the value. */
export const shownSequence = (ledger: unknown): number => (typeof ledger === 'number' ? ledger : 0);
