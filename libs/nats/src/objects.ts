import { createHash } from 'node:crypto';
import { JetStreamApiError, type JetStreamPublishOptions, type StoredMsg } from '@nats-io/jetstream';
import type { Payload } from '@nats-io/nats-core';
import { isHash, OBJECTS, objectSubject } from '#libs/contracts';
import { sortObjects, type StoredObject } from '#libs/engine';
import type { Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { isConnectionTrouble, isStreamFull, REFUSALS } from './errors.js';
import { growingMs, pause, pipelined } from './signal.js';
import { readAll } from './stream-reader.js';

/** Large or binary content in the object store. */
export interface ObjectInfo {
  readonly sha256: string;
  /** The name that it was uploaded with: for people. */
  readonly object: string;
  readonly bytes: number;
  /** Of every chunk except the last. */
  readonly chunkBytes: number;
}

interface InfoAt extends ObjectInfo {
  readonly sequence: number;
  /** All of its chunks are stored. */
  readonly isWhole: boolean;
}

export interface ListedObject extends InfoAt, StoredObject {}

/** Content to upload. It is read only if the store does not have it. */
export interface NewObject {
  readonly sha256: string;
  readonly object: string;
  readonly bytes: number;
  /** The content in chunks of exactly this size, except for the last one. */
  readonly chunks: (chunkBytes: number) => AsyncIterable<Uint8Array>;
}

/** Far below the smallest limit of messages that Sluice works with, and large enough that the disk is the limit. */
const CHUNK_BYTES = 256 * 1024;
/** How many chunks are on their way at once: an upload needs this much memory. */
const WIDTH = 8;
const TRIES = 5;

/** The object store is full. */
export class ObjectStoreFullError extends Error {
  override readonly name = 'ObjectStoreFullError';
}

/**
 * The object store: the stream OBJECTS. The chunks of an object are under `blobs.<sha256>.<n>`, so permission to read
 * one object is permission for one subject. `blobs.<sha256>.info` is written before the first chunk, and again after
 * the last one.
 */
export class Objects {
  constructor(private readonly bus: Bus) {}

  /** Undefined if there is no such object, or not all of it is stored. Reads from any replica. */
  async find(sha256: string): Promise<ObjectInfo | undefined> {
    const info = storedInfo(await this.nearest(objectSubject(sha256, 'info')));
    return info?.isWhole === true ? info : undefined;
  }

  /** One chunk, counted from 0; undefined if it is not there. What it contains is not checked. */
  async chunk(sha256: string, n: number): Promise<Uint8Array | undefined> {
    return (await this.nearest(objectSubject(sha256, n)))?.data;
  }

  /** Which of these objects are not in the store, as the stream's leader knows. */
  async missing(hashes: Iterable<string>): Promise<ReadonlySet<string>> {
    const missing = new Set<string>();
    await pipelined(new Set(hashes), WIDTH, async (sha256) => {
      if ((await this.latest(sha256))?.isWhole !== true) missing.add(sha256);
    });
    return missing;
  }

  /**
   * Uploads an object. Returns false if the store had it already. Throws ObjectStoreFullError, and Error if the content
   * is not the one with this hash.
   */
  async put(object: NewObject): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const found = await this.latest(object.sha256);
      if (found?.isWhole === true && (await this.hasAllChunks(found))) {
        // It counts as new from now on, so that it is not deleted before a change refers to it.
        if (await this.keep(found)) return false;
        continue;
      }
      const info = { ...object, chunkBytes: CHUNK_BYTES };
      if (!(await this.putInfo({ ...info, isWhole: false }, found?.sequence ?? 0))) continue;
      await this.putChunks(object);
      await this.putInfo({ ...info, isWhole: true });
      return true;
    }
    throw new Error(`${object.object} was uploaded by somebody else at the same time: try again`);
  }

  /** All objects, and those that are not whole. */
  async list(): Promise<readonly ListedObject[]> {
    const objects: ListedObject[] = [];
    await readAll(this.bus, { stream: OBJECTS, filters: [objectSubject('*', 'info')] }, (message) => {
      const info = infoIn(message.subject, message.string());
      if (info !== undefined) objects.push({ ...info, sequence: message.seq, storedMs: message.time.getTime() });
    });
    return objects;
  }

  /** Makes an object count as new. Returns false if it is gone, or somebody has written it. */
  keep(object: InfoAt): Promise<boolean> {
    return this.putInfo(object, object.sequence);
  }

  /**
   * Deletes an object. Returns false if it is gone, or somebody has written it. Chunks with the sequence `before` or a
   * later one stay: somebody uploads them again.
   */
  async remove({ sha256, sequence }: InfoAt, before: number): Promise<boolean> {
    try {
      await this.bus.unlessLost(() => this.bus.jsm.streams.deleteMessage(OBJECTS, sequence, false));
    } catch (error) {
      if (error instanceof JetStreamApiError && !isConnectionTrouble(error)) return false;
      throw error;
    }
    const filter = objectSubject(sha256, '*');
    await this.bus.unlessLost(() => this.bus.jsm.streams.purge(OBJECTS, { filter, seq: before }));
    return true;
  }

  private async hasAllChunks({ sha256, bytes, chunkBytes }: InfoAt): Promise<boolean> {
    const { state } = await this.bus.unlessLost(() =>
      this.bus.jsm.streams.info(OBJECTS, { subjects_filter: objectSubject(sha256, '*') }),
    );
    return Object.keys(state.subjects ?? {}).length === Math.ceil(bytes / chunkBytes) + 1;
  }

  private async latest(sha256: string): Promise<InfoAt | undefined> {
    return storedInfo(await this.bus.stored(OBJECTS, { last_by_subj: objectSubject(sha256, 'info') }));
  }

  private nearest(subject: string): Promise<StoredMsg | null> {
    return this.bus.nearest(OBJECTS, subject);
  }

  /** With `before`: only if this is still the sequence of what is there. */
  private async putInfo(
    { sha256, object, bytes, chunkBytes, isWhole }: Omit<InfoAt, 'sequence'>,
    before?: number,
  ): Promise<boolean> {
    const text = JSON.stringify({ object, bytes, chunkBytes, isWhole });
    try {
      await this.publish(
        objectSubject(sha256, 'info'),
        text,
        before === undefined ? {} : { expect: { lastSubjectSequence: before } },
      );
      return true;
    } catch (error) {
      if (error instanceof JetStreamApiError && REFUSALS.has(error.code)) return false;
      throw error;
    }
  }

  private async putChunks({ sha256, bytes, chunks }: NewObject): Promise<void> {
    const hash = createHash('sha256');
    const running = new Set<Promise<void>>();
    const failures: unknown[] = [];
    let [n, length] = [0, 0];
    for await (const chunk of chunks(CHUNK_BYTES)) {
      hash.update(chunk);
      length += chunk.length;
      const job: Promise<void> = this.publish(objectSubject(sha256, n++), chunk)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(job));
      running.add(job);
      if (running.size >= WIDTH) await Promise.race(running);
      if (failures.length > 0) break;
    }
    await Promise.all(running);
    if (failures.length > 0) throw failures[0];
    if (length !== bytes || hash.digest('hex') !== sha256)
      throw new Error('the file was changed while it was uploaded');
  }

  private async publish(subject: string, body: Payload, options: Partial<JetStreamPublishOptions> = {}): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      try {
        await this.bus.publish(subject, body, options);
        return;
      } catch (error) {
        if (isStreamFull(error))
          throw new ObjectStoreFullError(
            `the object store has no space for this: ${(error as Error).message}. Objects that nothing refers to are deleted after some days; to raise the limit, run nats stream edit ${OBJECTS} --max-bytes=SIZE`,
          );
        if (tries >= TRIES || !isConnectionTrouble(error)) throw error;
        await pause(growingMs(tries, 100, 2_000));
      }
    }
  }
}

export interface ObjectSweepOptions {
  readonly bus: Bus;
  /** How long an object stays that nothing refers to. */
  readonly unreferencedMs: number;
  /** Tells which objects something refers to. Called after the objects were listed. */
  readonly readReferences: () => Promise<(sha256: string) => boolean>;
  readonly logger: Logger;
}

/** Deletes objects that nothing has referred to for a long time. Returns how many. */
export async function sweepObjects({
  bus,
  unreferencedMs,
  readReferences,
  logger,
}: ObjectSweepOptions): Promise<number> {
  const objects = new Objects(bus);
  const { state, ts } = await bus.streamInfo(OBJECTS);
  const all = await objects.list();
  const { renewed, due } = sortObjects(all, await readReferences(), { nowMs: Date.parse(ts ?? ''), unreferencedMs });
  for (const object of renewed) await objects.keep(object);
  let removed = 0;
  for (const object of due) if (await objects.remove(object, state.last_seq + 1)) removed += 1;
  if (removed > 0) logger.info({ removed }, 'deleted objects that nothing refers to');
  return removed;
}

const storedInfo = (message: StoredMsg | null): InfoAt | undefined => {
  const info = message === null ? undefined : infoIn(message.subject, message.string());
  return info === undefined || message === null ? undefined : { ...info, sequence: message.seq };
};

/** Undefined for what Sluice did not write: anybody with access to the stream can write there. */
function infoIn(subject: string, text: string): Omit<InfoAt, 'sequence'> | undefined {
  const sha256 = subject.split('.')[1] ?? '';
  try {
    const { object, bytes, chunkBytes, isWhole } = JSON.parse(text) as Partial<InfoAt>;
    const isOne =
      isHash(sha256) && typeof object === 'string' && isCount(bytes) && isCount(chunkBytes) && chunkBytes > 0;
    return isOne ? { sha256, object, bytes, chunkBytes, isWhole: isWhole === true } : undefined;
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
