import type { JsMsg } from '@nats-io/jetstream';
import { LEDGER } from '#libs/contracts';
import type { Bus } from './connection.js';
import { growingMs, pause, Signal } from './signal.js';
import { StreamReader } from './stream-reader.js';

/** Messages kept for services that are a little behind: up to twice that, and no more than these bytes. */
const KEPT = 4_000;
const KEPT_BYTES = 16 * 2 ** 20;
/** How many messages a reading of its own may ask for at once. */
const AHEAD = 2_000;

/** Takes each message in the order of the ledger. Returns whether there is room for the next one. */
export type TailReader = (message: JsMsg) => boolean;

/**
 * Reads the end of the ledger once for all services of a process. A service that is further behind than the messages
 * kept here reads on its own until it has caught up.
 */
export class LedgerTail {
  private readonly all = new Set<LedgerFollower>();
  private readonly live = new Set<LedgerFollower>();
  private readonly change = new Signal();
  private messages: JsMsg[] = [];
  private messageBytes = 0;
  private source: StreamReader | undefined;
  /** All messages after this sequence are in `kept`, or will come from `source`. */
  private behind = 0;

  constructor(readonly bus: Bus) {}

  /** Delivers all messages after this sequence, then new ones, until it is closed. */
  follow(after: number, take: TailReader): LedgerFollower {
    const following = new LedgerFollower(this, after, take);
    this.all.add(following);
    following.start();
    return following;
  }

  /** Forgets what was read, because the ledger may have been replaced. Followers continue from where they are. */
  begin(): void {
    this.source?.close();
    this.source = undefined;
    this.forget(0);
    const live = [...this.live];
    this.live.clear();
    this.change.give();
    for (const following of live) following.wake();
  }

  /**
   * Delivers the kept messages after the follower's position, then new ones. Returns false if the follower must catch
   * up on its own first. The first follower starts the reading at its own position.
   */
  async join(following: LedgerFollower): Promise<boolean> {
    while (this.source === undefined && this.all.has(following)) await this.open(following.after);
    if (!this.all.has(following)) return true;
    if (following.after < this.behind) return false;
    for (const message of this.messages) if (message.seq > following.after && !following.give(message)) return true;
    this.live.add(following);
    this.change.give();
    return true;
  }

  leave(following: LedgerFollower): void {
    this.all.delete(following);
    this.live.delete(following);
    if (this.all.size === 0) this.begin();
    else this.change.give();
  }

  isLive(following: LedgerFollower): boolean {
    return this.live.has(following);
  }

  private async open(after: number): Promise<void> {
    const source = await StreamReader.open(this.bus, { stream: LEDGER, from: after + 1, ahead: AHEAD });
    // Another follower was faster, or all have left.
    if (this.source !== undefined || this.all.size === 0) return source.close();
    this.source = source;
    this.behind = after;
    void this.pass(source)
      .catch((error: unknown) => this.bus.logger.warn({ error }, 'reading the ledger failed'))
      .finally(() => {
        if (this.source === source) this.begin();
      });
  }

  private async pass(source: StreamReader): Promise<void> {
    for await (const message of source) {
      if (this.source !== source) return;
      this.keep(message);
      for (const following of this.live) if (!following.give(message)) this.live.delete(following);
      // If there is only one follower, no other needs the message.
      if (this.all.size === 1 && this.live.size === 1) this.forget(message.seq);
      // Wait while no follower has room: more messages would only be dropped.
      while (
        this.live.size === 0 &&
        (this.messages.length >= KEPT || this.messageBytes >= KEPT_BYTES / 2) &&
        this.source === source
      )
        await this.change.wait();
    }
  }

  private forget(upTo: number): void {
    this.messages = [];
    this.messageBytes = 0;
    this.behind = upTo;
  }

  private keep(message: JsMsg): void {
    this.messages.push(message);
    this.messageBytes += message.data.length;
    if (this.messages.length < 2 * KEPT && this.messageBytes < KEPT_BYTES) return;
    // Drops the older half at least, and more if the rest is still too large.
    let from = Math.floor(this.messages.length / 2);
    let bytes = bytesOf(this.messages.slice(from));
    for (; from < this.messages.length - 1 && bytes > KEPT_BYTES / 2; from += 1)
      bytes -= (this.messages[from] as JsMsg).data.length;
    this.messages = this.messages.slice(from);
    this.messageBytes = bytes;
    this.behind = (this.messages[0] as JsMsg).seq - 1;
  }
}

const bytesOf = (messages: readonly JsMsg[]): number => messages.reduce((sum, { data }) => sum + data.length, 0);

/** The position of one service in the ledger. */
export class LedgerFollower {
  private readonly news = new Signal();
  private closed = false;
  private isFull = false;
  private alone: StreamReader | undefined;

  /** @internal by `LedgerTail.follow` */
  constructor(
    private readonly tail: LedgerTail,
    public after: number,
    private readonly take: TailReader,
  ) {}

  start(): void {
    void this.run();
  }

  goOn(): void {
    if (!this.isFull) return;
    this.isFull = false;
    this.wake();
  }

  close(): void {
    this.closed = true;
    this.alone?.close();
    this.tail.leave(this);
    this.wake();
  }

  wake(): void {
    this.news.give();
  }

  give(message: JsMsg): boolean {
    if (message.seq > this.after) {
      this.after = message.seq;
      this.isFull = !this.take(message);
    }
    return !this.isFull;
  }

  private async run(): Promise<void> {
    for (let failures = 0; !this.closed;) {
      try {
        if (!this.isFull && !this.tail.isLive(this) && !(await this.tail.join(this))) await this.readAlone();
        failures = 0;
        if (this.isFull || this.tail.isLive(this)) await this.news.wait();
      } catch (error) {
        this.tail.bus.logger.debug({ error }, 'the ledger cannot be read; trying again');
        await pause(growingMs(failures++, 50, 3_000));
      }
    }
  }

  private async readAlone(): Promise<void> {
    const reader = await StreamReader.open(this.tail.bus, { stream: LEDGER, from: this.after + 1, ahead: AHEAD });
    this.alone = reader;
    try {
      if (this.closed) return;
      for await (const message of reader) {
        if (this.closed || (!this.give(message) && !(await this.room()))) return;
        if (await this.tail.join(this)) return;
      }
    } finally {
      reader.close();
    }
  }

  private async room(): Promise<boolean> {
    while (this.isFull && !this.closed) await this.news.wait();
    return !this.closed;
  }
}
