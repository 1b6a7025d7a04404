import { growingMs, Signal, type Bus, type ServiceNotes } from '#libs/bus';
import type { Kube } from '#libs/kube';
import { monotonicMs, wallTime, type Logger } from '#libs/runtime';
import { decide, State, type CertificateStanding, type Decided, type Digest } from '../core/index.js';
import { Deeds } from './deeds.js';
import { Definitions } from './definitions.js';
import { PublishedChanges } from './published-changes.js';
import { followResources } from './seen-objects.js';
import { followViews, readViews } from './seen-views.js';

export interface GatewayParts {
  readonly bus: Bus;
  readonly kube: Kube;
  readonly logger: Logger;
  readonly digest: Digest;
  readonly debounceMs: number;
  /** Where to say what a person should know. */
  readonly notes?: ServiceNotes;
  /** How often to look at the definitions. */
  readonly definitionsMs?: number;
  /** How the webhook stands; undefined where there is none. */
  readonly admission?: () => CertificateStanding;
}

const AGAIN_MS = 10_000;
/** Between two looks. */
const [LEAST_MS, MOST_MS] = [20, 1_000];
/** Looks again even if nothing is heard: whatever was missed is found then. */
const LONGEST_MS = 60_000;

/** One time of leading: look, decide, publish, write; and again whenever something is heard. It begins from nothing. */
export class GatewaySession {
  private readonly state: State;
  private readonly changes: PublishedChanges;
  private readonly deeds: Deeds;
  private readonly definitions: Definitions;
  private readonly signal = new Signal();
  private readonly stopping = new AbortController();
  private unfollow: () => void = () => undefined;

  constructor(private readonly parts: GatewayParts) {
    const { bus, kube, logger, digest, notes, definitionsMs } = parts;
    this.state = new State(digest);
    this.changes = new PublishedChanges(bus, this.state);
    this.definitions = new Definitions(kube, notes, logger, () => this.signal.give(), definitionsMs);
    this.deeds = new Deeds(bus, kube, this.state, logger, () => this.signal.give());
  }

  start(): this {
    void this.run();
    this.definitions.start();
    return this;
  }

  stop(): void {
    this.stopping.abort();
    this.deeds.stop();
    this.definitions.stop();
    this.unfollow();
    this.signal.give();
  }

  private async run(): Promise<void> {
    const { bus, kube, logger } = this.parts;
    const changed = (): void => this.signal.give();
    let isFollowing = false;
    for (let tries = 0; !this.stopping.signal.aborted;) {
      try {
        if (!isFollowing) {
          // What was published before is known before any object is looked at.
          await readViews(bus, this.state);
          if (this.stopping.signal.aborted) return;
          followViews(bus, this.state, logger, this.stopping.signal, changed);
          this.unfollow = followResources(kube, this.state, logger, changed);
          isFollowing = true;
        }
        const startMs = monotonicMs();
        const wakeAtMs = await this.turn();
        tries = 0;
        // What comes meanwhile is looked at together: a look costs with the number of objects, and writes go on beside it.
        await new Promise((next) =>
          setTimeout(next, Math.min(MOST_MS, Math.max(LEAST_MS, 2 * (monotonicMs() - startMs)))).unref(),
        );
        await this.signal.wait(Math.min(LONGEST_MS, wakeAtMs - monotonicMs()));
      } catch (error) {
        logger.warn({ error }, 'a turn failed; trying again');
        await new Promise((resolve) => setTimeout(resolve, growingMs(tries, 200, AGAIN_MS)).unref());
        tries += 1;
      }
    }
  }

  /** When to look again. */
  private async turn(): Promise<number> {
    let decided = this.decide();
    while (decided.unread.length > 0) {
      await this.changes.read(decided.unread);
      decided = this.decide();
    }
    const [batch] = decided.publish;
    if (batch !== undefined || decided.deeds.some((deed) => deed.do === 'release')) {
      const { last, isNew } = await this.changes.catchUp();
      if (isNew || this.stopping.signal.aborted) return 0;
      if (batch !== undefined) {
        const change = await this.changes.publish(batch, last);
        if (change !== undefined) this.parts.logger.info({ change, bytes: batch.text.length }, 'published');
        return 0;
      }
    }
    this.deeds.begin(decided.deeds);
    return decided.wakeAtMs;
  }

  private decide(): Decided {
    this.state.definitions = this.definitions.found;
    this.state.admission = this.parts.admission?.();
    return decide(this.state, { nowMs: monotonicMs(), at: wallTime(), debounceMs: this.parts.debounceMs });
  }
}
