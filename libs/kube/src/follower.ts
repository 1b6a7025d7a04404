import { setTimeout as sleep } from 'node:timers/promises';
import { SILENT, type Logger } from '#libs/process';
import type { KubeConnection } from './connection.js';
import { isKubeStatus, isMissingRight, KubeError } from './errors.js';
import type { RawObject } from './objects.js';

/**
 * What to follow, and the callbacks. An error that `heard` or `listed` throws is logged, and the follower continues.
 */
export interface FollowerOptions<T extends RawObject, K = T> {
  readonly connection: KubeConnection;
  /** Of the collection, as in `/api/v1/nodes`. */
  readonly path: string;
  /** More of the query, as in `fieldSelector=…`. */
  readonly query?: string;
  /** What to keep of each object during a list: ten thousand whole Nodes take too much memory. */
  readonly pick: (object: T) => K;
  /** Called with all objects: one that was known before and is not among them is gone. */
  readonly onList: (objects: readonly K[]) => void;
  readonly onEvent: (event: 'set' | 'deleted', object: T) => void;
  /** Called when the server does not have this collection, which is not logged then. It is tried again. */
  readonly onMissing?: () => void;
  readonly logger?: Logger | undefined;
  /** Bookmarks arrive every minute: a connection without any message for longer is dead. */
  readonly silentMs?: number;
  /** How soon after a list everything is listed again because a watch broke. */
  readonly listAgainMs?: number;
  readonly firstPauseMs?: number;
  readonly longestPauseMs?: number;
}

const SILENT_MS = 90_000;
/** The server ends each watch after this time. */
const WATCH_SECONDS = 600;
/**
 * If the data of a server was replaced, a watch goes on from a version that has no meaning there, and misses what is
 * gone. So after a watch broke, everything is listed again. Not at once if that was done lately: a connection may break
 * every minute.
 */
const LIST_AGAIN_MS = 600_000;
const GONE = 410;
const NOT_FOUND = 404;

interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T & { readonly code?: number; readonly reason?: string; readonly message?: string };
}

/**
 * Follows a collection until it is stopped: lists, watches, and starts over with growing pauses however the watch ends.
 */
export class Follower<T extends RawObject, K = T> {
  private readonly stopping = new AbortController();
  private version = '';
  private failures = 0;
  /** The last watch ended because no message arrived. */
  private wasSilent = false;
  /** A watch has ended before its time since the last list. */
  private isBroken = false;
  private listedMs = 0;
  private readonly logger: Logger;

  constructor(private readonly following: FollowerOptions<T, K>) {
    this.logger = following.logger ?? SILENT;
  }

  start(): this {
    void this.run();
    return this;
  }

  stop(): void {
    this.stopping.abort();
  }

  private get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      // A server whose versions are lower now sends nothing at all.
      if (this.wasSilent || (this.isBroken && this.isListDue)) this.version = '';
      this.wasSilent = false;
      try {
        if (this.version === '') await this.list();
        if (!this.stopped) await this.watch();
      } catch (error) {
        if (this.stopped) return;
        // The server no longer has the changes in between: list everything again.
        if (isKubeStatus(error, GONE)) this.version = '';
        const { onMissing } = this.following;
        const isMissing = onMissing !== undefined && isKubeStatus(error, NOT_FOUND);
        if (isMissing) {
          this.version = '';
          this.tell(onMissing);
        }
        // The connection logs a missing right, once. Silence is not logged either, because an API server sends nothing
        // about a new kind for the first two minutes.
        this.logger[isMissingRight(error) || this.wasSilent || isMissing ? 'debug' : 'warn'](
          { error, path: this.following.path, failures: this.failures },
          'a watch ended; trying again',
        );
      }
      await this.pause();
    }
  }

  private async list(): Promise<void> {
    const objects: K[] = [];
    let version = '';
    const { connection, path, query, pick } = this.following;
    for await (const { items = [], metadata } of connection.pages<T>(path, query)) {
      if (this.stopped) return;
      for (const object of items) objects.push(pick(object));
      version = metadata?.resourceVersion ?? '';
    }
    if (this.stopped) return;
    this.tell(() => this.following.onList(objects));
    this.version = version;
    [this.isBroken, this.listedMs] = [false, performance.now()];
  }

  private async watch(): Promise<void> {
    const giveUp = new AbortController();
    const endMs = performance.now() + WATCH_SECONDS * 1_000;
    const silentMs = this.following.silentMs ?? SILENT_MS;
    let timer: NodeJS.Timeout | undefined;
    const listen = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.wasSilent = true;
        giveUp.abort(new Error(`no event or bookmark arrived for ${silentMs / 1_000} s`));
      }, silentMs);
      timer.unref();
    };
    listen();
    try {
      const { connection, path, query = '' } = this.following;
      const watch = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_SECONDS}&resourceVersion=${encodeURIComponent(this.version)}`;
      await connection.lines(
        `${path}?${query === '' ? '' : `${query}&`}${watch}`,
        AbortSignal.any([this.stopping.signal, giveUp.signal]),
        (line) => {
          listen();
          this.take(line);
        },
      );
    } finally {
      clearTimeout(timer);
      if (performance.now() < endMs) this.isBroken = true;
    }
  }

  private get isListDue(): boolean {
    return performance.now() - this.listedMs >= (this.following.listAgainMs ?? LIST_AGAIN_MS);
  }

  private take(line: string): void {
    if (line === '' || this.stopped) return;
    const { type, object } = JSON.parse(line) as WatchEvent<T>;
    if (type === 'ERROR')
      throw new KubeError(object.code ?? 0, object.reason ?? '', object.message ?? 'the watch ended with an error');
    this.failures = 0;
    if (type !== 'BOOKMARK') this.tell(() => this.following.onEvent(type === 'DELETED' ? 'deleted' : 'set', object));
    this.version = object.metadata?.resourceVersion ?? this.version;
  }

  private tell(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.logger.error(
        { error, path: this.following.path },
        'a bug: an update from the API server could not be processed',
      );
    }
  }

  /** Also after a clean end: a server that ends every watch at once must not be asked in a tight loop. */
  private async pause(): Promise<void> {
    if (this.stopped) return;
    const { firstPauseMs = 100, longestPauseMs = 30_000 } = this.following;
    const pauseMs =
      Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.failures, 20)) * (0.75 + Math.random() / 2);
    this.failures += 1;
    await sleep(pauseMs, undefined, { signal: this.stopping.signal, ref: false }).catch(() => undefined);
  }
}
