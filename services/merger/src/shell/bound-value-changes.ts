import { createHash } from 'node:crypto';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { BoundValue } from '#libs/contracts';
import { BoundValueStore, Bus, LedgerService, publishChange } from '#libs/nats';
import { LOGGER } from '#libs/nest';
import { monotonicMs, type Logger } from '#libs/process';
import {
  BINDINGS_SOURCE,
  changesOf,
  newValuesOf,
  wantedValues,
  type Input,
  type NewValues,
  type State,
  type WantedValues,
} from '../core/index.js';

const LOOK_MS = 500;
/**
 * Values are published once no others have been read for this time: an object on a hub is often for many nodes, and
 * one rollout for all of them stops at the first that fails. But values that change all the time must not wait forever.
 */
const QUIET_MS = 2_000;
const LONGEST_MS = 10_000;
const EMPTY = '[]';
const AGAIN_MS = 5_000;
/** How many values are read at once. */
const AT_ONCE = 16;

/**
 * Publishes what appliers have read for bindings, while this copy leads. It looks at the ledger first, and then at what
 * was read, and the change names what it replaces. So the merger refuses it if another copy was faster.
 */
@Injectable()
export class BoundValueChanges implements OnModuleInit, OnModuleDestroy {
  private readonly store: BoundValueStore;
  /** As the bucket had it last. */
  private readonly read = new Map<string, readonly BoundValue[]>();
  /** What is wanted, as it was compared last with what was read. */
  private compared: readonly WantedValues[] | undefined;
  /** Whether something was read that was not compared yet. */
  private hasRead = false;
  /** The ids of what this copy has published last. The merger may not have read it yet. */
  private published = new Set<string>();
  /** What was read and is not published yet. */
  private news = { text: EMPTY, sinceMs: 0, changedMs: 0 };
  private timer: NodeJS.Timeout | undefined;
  private watching: AbortController | undefined;
  private unlisten: () => void = () => undefined;
  private isStopped = false;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.store = new BoundValueStore(bus);
  }

  onModuleInit(): void {
    this.unlisten = this.ledger.onLeadershipChange(() => this.follow());
  }

  onModuleDestroy(): void {
    this.isStopped = true;
    this.unlisten();
    this.end();
  }

  private follow(): void {
    this.end();
    if (!this.ledger.leading || this.isStopped) return;
    const watching = new AbortController();
    this.watching = watching;
    void this.watch(watching.signal);
    this.next();
  }

  private end(): void {
    this.watching?.abort();
    clearTimeout(this.timer);
    this.timer = undefined;
    this.read.clear();
    this.published.clear();
    this.compared = undefined;
  }

  private async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.store.watch(signal, ({ node, values }) => {
          this.read.set(node, values);
          this.hasRead = true;
        });
      } catch (error) {
        if (!signal.aborted) this.logger.warn({ error }, 'the values of bindings cannot be followed; trying again');
      }
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
    }
  }

  private next(): void {
    const timer = setTimeout(() => {
      void this.look().finally(() => {
        // It may no longer lead, or lead again.
        if (this.timer === timer) this.next();
      });
    }, LOOK_MS).unref();
    this.timer = timer;
  }

  /** As the bucket has it now. */
  private async newsOf(wanted: WantedValues): Promise<readonly NewValues[]> {
    const { values } = await this.store.read(wanted.node);
    const news = newValuesOf(wanted, values);
    return news === undefined ? [] : [news];
  }

  /** Whether what is to be published has been the same for a while. */
  private isQuiet(text: string): boolean {
    const nowMs = monotonicMs();
    const { news } = this;
    if (news.text !== text) this.news = { text, sinceMs: news.text === EMPTY ? nowMs : news.sinceMs, changedMs: nowMs };
    const { sinceMs, changedMs } = this.news;
    return text !== EMPTY && (nowMs - changedMs >= QUIET_MS || nowMs - sinceMs >= LONGEST_MS);
  }

  private async look(): Promise<void> {
    try {
      const wanted = await this.ledger.query(wantedValues);
      if (wanted === this.compared && !this.hasRead && this.news.text === EMPTY) return;
      this.compared = wanted;
      this.hasRead = false;
      // What the watch has shown may be outdated. It only says when and where to look.
      const shown = wanted.map((one) => newValuesOf(one, this.read.get(one.node) ?? []));
      if (!this.isQuiet(JSON.stringify(shown.filter((one) => one !== undefined)))) return;
      const changed = wanted.filter((_, i) => shown[i] !== undefined);
      const news: NewValues[] = [];
      for (let i = 0; i < changed.length; i += AT_ONCE)
        news.push(...(await Promise.all(changed.slice(i, i + AT_ONCE).map((one) => this.newsOf(one)))).flat());
      const ids = new Set<string>();
      for (const content of changesOf(news)) {
        const text = JSON.stringify(content);
        const id = createHash('sha256').update(text).digest('hex');
        ids.add(id);
        if (this.published.has(id) || this.isStopped) continue;
        const change = await publishChange(this.bus, { source: BINDINGS_SOURCE, text, id });
        this.logger.info({ change, message: content.message }, 'published the values of bindings');
      }
      this.published = ids;
    } catch (error) {
      this.logger.warn({ error }, 'the values of bindings could not be published; trying again');
    }
  }
}
