import type { FactType, NewFact } from '#libs/contracts';
import {
  parseViewKey,
  type Answer,
  type Copy,
  type Effect,
  type Need,
  type Now,
  type Results,
  type ViewWrite,
} from '#libs/kernel';
import { monotonicMs, type Logger } from '#libs/runtime';
import type { Bus } from './connection.js';
import { HaltedError } from './errors.js';
import type { Ledger } from './ledger.js';
import type { LedgerReader } from './ledger-reader.js';
import { growingMs, pause } from './signal.js';
import { kvSubject } from './topology.js';
import { ViewWriter, type Shown } from './view-writer.js';
import { newestViews } from './views-end.js';

export interface TermParts<S, I, N extends Need, G> {
  readonly bus: Bus;
  readonly ledger: Ledger;
  readonly reader: LedgerReader;
  readonly copy: Copy<S, I, N, G>;
  readonly gather: (needs: readonly N[], state: S) => Promise<ReadonlyMap<string, G>>;
  readonly settle: (inputs: readonly I[], answers: ReadonlyMap<I, Answer>) => void;
  readonly logger: Logger;
}

/** What always follows another fact of the same node: a thousand nodes a second make many lines. */
const QUIET: ReadonlySet<FactType> = new Set<FactType>(['node.lease.released']);

/** A view shows more than the ledger holds: it is a restored backup, and nothing may be appended to it. */
export class ViewsAheadError extends HaltedError {
  constructor(
    readonly shown: Shown,
    end: number,
  ) {
    const { bucket, subject, ledger } = shown;
    const key = subject.slice(kvSubject(bucket, '').length);
    super(
      `the view ${key === '' ? bucket : `${bucket}/${key}`} shows ${ledger}, but the ledger ends at ${end}: it is a restored backup, and nothing is appended to it${key === '' ? '' : ` (a value that somebody wrote by hand: nats kv del ${bucket} ${key}, and its owner writes it anew)`}`,
    );
  }
}

/** One time of leading: what a copy does to the world from the day it is elected until it is not. */
export class LeaderTerm<S, I, N extends Need, G> {
  private readonly views: ViewWriter;
  private readonly sinceMs = monotonicMs();
  private connectedSinceMs: number | undefined = this.sinceMs;
  private readonly unlisten: () => void;
  ended = false;
  appended = 0;
  refused = 0;

  constructor(private readonly parts: TermParts<S, I, N, G>) {
    this.views = new ViewWriter(parts.bus, parts.copy.core.name, parts.logger);
    this.unlisten = parts.bus.onConnection(
      (connected) => (this.connectedSinceMs = connected ? monotonicMs() : undefined),
    );
  }

  end(): void {
    this.ended = true;
    this.unlisten();
    this.views.stop();
  }

  get viewsWritten(): number {
    return this.views.written;
  }

  /** Compares every view with what it shall show and writes what differs. Throws ViewsAheadError. */
  async writeViews(foldedUpTo: () => Promise<number>): Promise<void> {
    const own = await this.views.load();
    const newest = await newestViews(this.parts.bus);
    // Read after the views: what they show honestly is in the ledger by now.
    const end = await foldedUpTo();
    const ahead = [...newest].find(([, ledger]) => ledger > end);
    if (own.ledger > end) throw new ViewsAheadError(own, end);
    if (ahead !== undefined) throw new ViewsAheadError({ bucket: ahead[0], subject: '', ledger: ahead[1] }, end);
    const { core, state } = this.parts.copy;
    core.takeTouched(state);
    const shown: ViewWrite[] = [];
    for (const text of core.viewKeys(state)) {
      const key = parseViewKey(text);
      const value = core.view(state, key);
      if (value !== undefined) shown.push({ key, value });
    }
    const atMs = await this.write(shown, end);
    if (!this.ended) for (const { key } of shown) core.shown?.(state, key, atMs);
  }

  /** Carries out one effect of the turn. */
  async perform(effect: Effect<I, N>): Promise<Results<G>[keyof Results<G>]> {
    // From what is folded now, which may be more than when the turn asked.
    const { reader, copy } = this.parts;
    switch (effect.do) {
      case 'read': {
        const tail = await reader.take(copy.folded);
        if (reader.halted !== undefined) throw new HaltedError(reader.halted);
        return tail;
      }
      case 'catch-up':
        return reader.catchUp(copy.folded);
      case 'now':
        return this.now();
      case 'gather':
        return this.parts.gather(effect.needs, copy.state);
      case 'append':
        return this.append(effect);
      case 'views':
        return this.write(effect.writes, effect.ledger);
      case 'settle':
        return this.parts.settle(effect.inputs, effect.answers);
      case 'back-off':
        return pause(growingMs(effect.refusals - 5, 20, 1_000));
    }
  }

  /** Resolves with the time when all of them stand, or when this term has ended. */
  private async write(writes: readonly ViewWrite[], ledger: number): Promise<number> {
    for (const { key, value } of writes) {
      this.views.write(key, value, ledger);
      if (this.views.isFull) await this.views.room();
    }
    await this.views.flush();
    return monotonicMs();
  }

  private async append(effect: Extract<Effect<I, N>, { do: 'append' }>): Promise<Results<G>['append']> {
    const result = await this.parts.ledger.append(effect.facts, effect.expected, effect.separate);
    if (result.outcome !== 'appended') {
      this.refused += 1;
      this.parts.logger.debug(
        { outcome: result.outcome, reason: result.reason, expected: effect.expected },
        'not appended',
      );
      return { outcome: result.outcome };
    }
    this.appended += effect.facts.length;
    for (const fact of effect.facts)
      this.parts.logger[QUIET.has(fact.type) ? 'debug' : 'info'](concerns(fact), fact.type);
    return { outcome: 'appended', ...(await this.parts.reader.tailOf(result.appended)) };
  }

  private now(): Now {
    const sinceMs = this.connectedSinceMs;
    return {
      monotonicMs: monotonicMs(),
      leadingSinceMs: this.ended || sinceMs === undefined ? undefined : Math.max(this.sinceMs, sinceMs),
    };
  }
}

/** What a log line about a fact names: enough to follow one change, node or lease through all services. */
function concerns(fact: NewFact): object {
  const { change, node, lease, pool, hash, because, reason } = fact as Partial<
    Record<'change' | 'node' | 'lease' | 'pool' | 'hash' | 'because' | 'reason', string>
  >;
  return {
    change: change || undefined,
    node,
    lease: lease || undefined,
    pool,
    hash,
    because,
    reason: reason || undefined,
  };
}
