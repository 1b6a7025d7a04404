import type { JsMsg } from '@nats-io/jetstream';
import { decodeView, nodeOfToken, WireError, type ViewBucket, type ViewValues } from '#libs/contracts';
import type { Bus } from './connection.js';
import { isDeletion, isStoredDeletion } from './message-headers.js';
import { readAll, StreamReader } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';
import { bucketKey, isNodeBucket } from './view-writer.js';

export interface ViewEntry<B extends ViewBucket> {
  readonly key: string;
  readonly value: ViewValues[B];
}

/** The value of one key as the stream's leader has it. Keys of nodes are their names, dots and all. */
export async function readView<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  key: string,
): Promise<ViewValues[B] | undefined> {
  const message = await bus.stored(kvStream(bucket), { last_by_subj: kvSubject(bucket, bucketKey(bucket, key)) });
  return message === null || isStoredDeletion(message) ? undefined : decodeView(bucket, message.string());
}

/** Every value of a bucket, by key; what cannot be read is left out. */
export async function listViews<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
): Promise<ReadonlyMap<string, ViewValues[B]>> {
  const found = new Map<string, ViewValues[B]>();
  await readAll(bus, { stream: kvStream(bucket), lastPerSubject: true, ahead: 2_000 }, (message) => {
    const entry = entryOf(bucket, message);
    if (entry !== undefined) found.set(entry.key, entry.value);
  });
  return found;
}

/** Current values first, then every change, until the signal aborts. */
export async function* watchViews<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  keys: string,
  signal: AbortSignal,
): AsyncGenerator<ViewEntry<B>> {
  if (signal.aborted) return;
  const filter = keys === '' || keys === '*' || keys === '>' ? '>' : bucketKey(bucket, keys);
  const reader = await StreamReader.open(bus, {
    stream: kvStream(bucket),
    filters: [kvSubject(bucket, filter)],
    lastPerSubject: true,
  });
  const close = (): void => reader.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    for await (const message of reader) {
      if (signal.aborted) return;
      const entry = entryOf(bucket, message);
      if (entry !== undefined) yield entry;
    }
  } finally {
    signal.removeEventListener('abort', close);
    reader.close();
  }
}

function entryOf<B extends ViewBucket>(bucket: B, message: JsMsg): ViewEntry<B> | undefined {
  if (isDeletion(message)) return undefined;
  const token = message.subject.slice(kvSubject(bucket, '').length);
  try {
    return { key: isNodeBucket(bucket) ? nodeOfToken(token) : token, value: decodeView(bucket, message.string()) };
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
