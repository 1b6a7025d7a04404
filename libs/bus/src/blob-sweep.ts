import { headers } from '@nats-io/nats-core';
import { JetStreamApiError } from '@nats-io/jetstream';
import type { Logger } from '#libs/runtime';
import type { Bus } from './connection.js';
import { REFUSALS } from './ledger.js';
import { isDeletion, plainHeaders } from './message-headers.js';
import { pipelined } from './pipeline.js';
import { readAll } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';

export interface SweepOptions {
  readonly bus: Bus;
  readonly bucket: string;
  /** Says which keys are named; asked after the bucket was looked through, so that what was written before is known to it. */
  readonly naming: () => Promise<(key: string) => boolean>;
  /** For how long a value stays that nothing names. */
  readonly unnamedMs: number;
  /** Younger ones are left alone: the fact that names them may be on its way. */
  readonly settledMs: number;
  readonly logger: Logger;
}

export interface Swept {
  /** So many have a time to live now that had none, and so many have none any more. */
  readonly marked: number;
  readonly unmarked: number;
  readonly looked: number;
}

interface Value {
  readonly key: string;
  readonly sequence: number;
  readonly storedMs: number;
  readonly marked: boolean;
}

/** The server's own header: after so many seconds it deletes the message. */
const TTL = 'Nats-TTL';
const WIDTH = 32;

/**
 * Lets what nothing names run out. A value is marked by being written once more with a time to live, on condition that nobody has written it since it was
 * looked at; the server deletes it then. Nothing is kept in books: whoever writes it anew, without, takes the mark off, and so does a sweep that finds it named.
 */
export async function sweepBlobs(options: SweepOptions): Promise<Swept> {
  const { bus, bucket, unnamedMs, settledMs, logger } = options;
  const { ts } = await bus.streamInfo(kvStream(bucket));
  const values = await listValues(bus, bucket);
  const isNamed = await options.naming();
  const settled = Date.parse(ts ?? '') - settledMs;
  let [marked, unmarked] = [0, 0];
  const changed = values.filter((value) =>
    isNamed(value.key) ? value.marked : !value.marked && value.storedMs <= settled,
  );
  await pipelined(changed, WIDTH, async (value) => {
    if (!(await rewrite(bus, bucket, value, value.marked ? undefined : Math.max(1, Math.round(unnamedMs / 1_000)))))
      return;
    if (value.marked) unmarked += 1;
    else marked += 1;
  });
  if (changed.length > 0) logger.info({ bucket, marked, unmarked }, 'what nothing names any more is to go');
  return { marked, unmarked, looked: values.length };
}

async function listValues(bus: Bus, bucket: string): Promise<readonly Value[]> {
  const values: Value[] = [];
  await readAll(bus, { stream: kvStream(bucket), lastPerSubject: true, headersOnly: true, ahead: 2_000 }, (message) => {
    if (isDeletion(message)) return;
    const key = message.subject.slice(kvSubject(bucket, '').length);
    values.push({
      key,
      sequence: message.seq,
      storedMs: message.time.getTime(),
      marked: plainHeaders(message)[TTL] !== undefined,
    });
  });
  return values;
}

/** False when somebody has written it since, or it is gone. */
async function rewrite(
  bus: Bus,
  bucket: string,
  { key, sequence }: Value,
  ttlSeconds: number | undefined,
): Promise<boolean> {
  const stored = await bus.stored(kvStream(bucket), { seq: sequence });
  if (stored === null) return false;
  const head = headers();
  if (ttlSeconds !== undefined) head.set(TTL, String(ttlSeconds));
  try {
    await bus.publish(kvSubject(bucket, key), stored.string(), {
      headers: head,
      expect: { lastSubjectSequence: sequence },
    });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && REFUSALS.has(error.code)) return false;
    throw error;
  }
}
