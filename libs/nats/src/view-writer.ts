import { hash } from 'node:crypto';
import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import { VIEW_BUCKETS, VIEWS, type ServiceName, type ViewBucket } from '#libs/contracts';
import type { ViewBody, ViewKey, ViewPosition } from '#libs/engine';
import type { Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { headersOf, isDeletion, isStoredDeletion } from './messages.js';
import { growingMs, pause, Signal } from './signal.js';
import { readAll } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';
import { bucketKey, shownKey, shownSequence } from './views.js';

interface KnownValue {
  readonly revision: number;
  readonly ledger: number;
  readonly digest: string;
}

interface Write {
  readonly bucket: ViewBucket;
  readonly subject: string;
  readonly text: string;
  readonly digest: string;
  readonly ledger: number;
}

const WIDTH = 256;
const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';
/** The digest of a key that was deleted. */
const DELETED = 'deleted';
/** A deleted key leaves a mark for those who watch the bucket. The server removes it after this time. */
const DELETION = { 'KV-Operation': 'DEL', 'Nats-TTL': '1h' };

/**
 * Writes one service's views by compare-and-set: only what differs, and never over a higher ledger sequence. Different
 * keys are written at the same time; of one key only the newest waits.
 */
export class ViewWriter {
  private readonly newest = new Map<string, KnownValue>();
  private readonly queued = new Map<string, Write>();
  private readonly active = new Set<string>();
  private readonly ended = new Signal();
  private stopped = false;
  written = 0;

  constructor(
    private readonly bus: Bus,
    private readonly service: ServiceName,
    private readonly logger: Logger,
  ) {}

  /** Reads the service's buckets. Returns the highest ledger sequence in a value, and its place. */
  async load(): Promise<ViewPosition> {
    let highest: ViewPosition = { ledger: 0, bucket: '', key: undefined };
    for (const bucket of VIEW_BUCKETS.filter((name) => VIEWS[name].owner === this.service)) {
      await readAll(this.bus, { stream: kvStream(bucket), lastPerSubject: true, ahead: 2_000 }, (message) => {
        const newest = knownOf(message.seq, message.string());
        if (!isDeletion(message)) this.newest.set(message.subject, newest);
        if (newest.ledger > highest.ledger)
          highest = { ledger: newest.ledger, bucket, key: message.subject.slice(kvSubject(bucket, '').length) };
      });
    }
    return highest;
  }

  /** The keys of this bucket that have a value. */
  keysOf(bucket: ViewBucket): readonly string[] {
    const prefix = kvSubject(bucket, '');
    return [...this.newest.keys()].flatMap((subject) =>
      subject.startsWith(prefix) ? shownKey(bucket, subject.slice(prefix.length)) : [],
    );
  }

  /**
   * Queues a value to be written, or the key to be deleted if there is none. What is queued without a wait in between
   * is sent together.
   */
  write(key: ViewKey, value: ViewBody | undefined, ledger: number): void {
    if (this.stopped) return;
    const body = value === undefined ? '{}' : JSON.stringify(value);
    const subject = kvSubject(key.bucket, bucketKey(key.bucket, key.key));
    const digest = value === undefined ? DELETED : digestOf(body);
    if (
      !this.queued.has(subject) &&
      !this.active.has(subject) &&
      (this.newest.get(subject)?.digest ?? DELETED) === digest
    )
      return;
    const text = body === '{}' ? `{"ledger":${ledger}}` : `{"ledger":${ledger},${body.slice(1)}`;
    this.queued.set(subject, { bucket: key.bucket, subject, text, digest, ledger });
    this.begin();
  }

  get isFull(): boolean {
    return this.queued.size > WIDTH && !this.stopped;
  }

  /** Resolves when the queue has room. */
  async room(): Promise<void> {
    while (this.isFull) await this.ended.wait();
  }

  /** Resolves when every queued value was written or replaced by a newer one. */
  async flush(): Promise<void> {
    while ((this.queued.size > 0 || this.active.size > 0) && !this.stopped) await this.ended.wait();
  }

  /** Drops what is still queued, because another copy leads. */
  stop(): void {
    this.stopped = true;
    this.queued.clear();
    this.ended.give();
  }

  private begin(): void {
    for (const [subject, write] of this.queued) {
      if (this.active.size >= WIDTH) return;
      if (this.active.has(subject)) continue;
      this.queued.delete(subject);
      this.active.add(subject);
      this.carryOut(write, 0);
    }
  }

  private carryOut(write: Write, tries: number): void {
    const newest = this.newest.get(write.subject);
    const isOvertaken = (newest?.ledger ?? 0) > write.ledger || (newest?.digest ?? DELETED) === write.digest;
    if (this.stopped || isOvertaken) return this.end(write);
    const isDeleted = write.digest === DELETED;
    const head = headersOf({ [EXPECTED]: String(newest?.revision ?? 0), ...(isDeleted ? DELETION : {}) });
    this.bus.store(write.subject, write.text, head, (answer) => {
      if (answer instanceof Error) return void this.tryAgain(write, tries, answer);
      if (isDeleted) this.newest.delete(write.subject);
      else this.newest.set(write.subject, { revision: answer.seq, ledger: write.ledger, digest: write.digest });
      this.written += 1;
      this.end(write);
    });
  }

  private end({ subject }: Write): void {
    this.active.delete(subject);
    this.begin();
    this.ended.give();
  }

  private async tryAgain(write: Write, tries: number, error: Error): Promise<void> {
    const refused = error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence;
    if (!refused) {
      if (tries > 0) this.logger.warn({ error, subject: write.subject }, 'a view could not be written; trying again');
      await pause(growingMs(tries, 50, 2_000));
    }
    // Also after a timeout: the value may have been written.
    await this.readAgain(write).catch((failure: unknown) =>
      this.logger.debug({ error: failure }, 'a view could not be read'),
    );
    this.carryOut(write, tries + 1);
  }

  private async readAgain(write: Write): Promise<void> {
    const message = await this.bus.stored(kvStream(write.bucket), { last_by_subj: write.subject });
    if (message === null) this.newest.delete(write.subject);
    else {
      const newest = knownOf(message.seq, message.string());
      this.newest.set(write.subject, isStoredDeletion(message) ? { ...newest, digest: DELETED } : newest);
    }
  }
}

function knownOf(revision: number, text: string): KnownValue {
  try {
    const { ledger, ...body } = JSON.parse(text) as { readonly ledger?: unknown };
    return { revision, ledger: shownSequence(ledger), digest: digestOf(JSON.stringify(body)) };
  } catch {
    // Not one of our views: it is overwritten.
    return { revision, ledger: 0, digest: '' };
  }
}

/** Keeps a digest instead of the text, to save memory: there is a view for each of 100,000 nodes. */
const digestOf = (body: string): string => hash('sha1', body, 'base64');
