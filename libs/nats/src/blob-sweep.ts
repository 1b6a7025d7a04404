import { JetStreamApiError } from '@nats-io/jetstream';
import { sweep, type Handlers, type StoredBlob, type SweepPort, type SweepTimes, type SweepResult } from '#libs/engine';
import type { Logger } from '#libs/process';
import { carryOut } from './carry-out.js';
import type { Bus } from './connection.js';
import { REFUSALS } from './errors.js';
import { headersOf, isDeletion, plainHeaders } from './messages.js';
import { pipelined } from './signal.js';
import { readAll } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';

export interface SweepOptions extends SweepTimes {
  readonly bus: Bus;
  readonly bucket: string;
  /**
   * Returns the referenced keys. Called after the bucket was read, so that it includes references to what was written
   * before.
   */
  readonly readReferences: () => Promise<(key: string) => boolean>;
  readonly logger: Logger;
}

interface Value extends StoredBlob {
  readonly sequence: number;
}

/** The server's own header: it deletes the message after this many seconds. */
const TTL = 'Nats-TTL';
const WIDTH = 32;

/** Lets the unreferenced values of a bucket expire. */
export async function sweepBlobs({
  bus,
  bucket,
  readReferences,
  logger,
  ...times
}: SweepOptions): Promise<SweepResult> {
  const handlers: Handlers<SweepPort<Value>> = {
    'list-blobs': async () => {
      const { ts } = await bus.streamInfo(kvStream(bucket));
      return { blobs: await listValues(bus, bucket), nowMs: Date.parse(ts ?? '') };
    },
    'read-references': readReferences,
    'rewrite-blobs': async ({ blobs, liveMs }) => {
      const ttlSeconds = liveMs === undefined ? undefined : Math.max(1, Math.round(liveMs / 1_000));
      let count = 0;
      await pipelined(blobs, WIDTH, async (value) => {
        if (await rewrite(bus, bucket, value, ttlSeconds)) count += 1;
      });
      return count;
    },
  };
  const swept = await carryOut(sweep<Value>(times), handlers);
  const { marked, unmarked } = swept;
  if (marked + unmarked > 0) logger.info({ bucket, marked, unmarked }, 'deleting blobs that nothing refers to');
  return swept;
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

/** False if it was written since, or is gone. */
async function rewrite(
  bus: Bus,
  bucket: string,
  { key, sequence }: Value,
  ttlSeconds: number | undefined,
): Promise<boolean> {
  const message = await bus.stored(kvStream(bucket), { seq: sequence });
  if (message === null) return false;
  try {
    await bus.publish(kvSubject(bucket, key), message.string(), {
      headers: headersOf(ttlSeconds === undefined ? {} : { [TTL]: String(ttlSeconds) }),
      expect: { lastSubjectSequence: sequence },
    });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && REFUSALS.has(error.code)) return false;
    throw error;
  }
}
