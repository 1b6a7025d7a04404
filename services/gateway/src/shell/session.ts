import { growingMs, Signal, type Bus, type ServiceNotes } from '#libs/nats';
import type { Kube } from '#libs/kube';
import { monotonicMs, wallTime, type Logger } from '#libs/process';
import {
  State,
  turn,
  type CertificateStatus,
  type Digest,
  type GatewayAnswers,
  type GatewayEffect,
} from '../core/index.js';
import { ActionRunner } from './actions.js';
import { Definitions } from './definitions.js';
import { PublishedChanges } from './published-changes.js';
import { followResources } from './seen-objects.js';
import { followViews, readViews, takersOf } from './seen-views.js';

export interface GatewayParts {
  readonly bus: Bus;
  readonly kube: Kube;
  readonly logger: Logger;
  readonly digest: Digest;
  readonly debounceMs: number;
  /** Where to show notes for operators. */
  readonly notes?: ServiceNotes;
  /** How often to check the definitions. */
  readonly definitionsMs?: number;
  /** The state of the webhook's certificate; undefined if there is no webhook. */
  readonly admission?: () => CertificateStatus;
}

const AGAIN_MS = 10_000;
/** The pause between two turns. */
const [LEAST_MS, MOST_MS] = [20, 1_000];
/** Takes another turn even if nothing has changed, to find what was missed. */
const LONGEST_MS = 60_000;

/** One term of a leader: read, decide, publish and write whenever something changes. Each term starts from scratch. */
export class GatewaySession {
  private readonly state: State;
  private readonly changes: PublishedChanges;
  private readonly actions: ActionRunner;
  private readonly definitions: Definitions;
  private readonly signal = new Signal();
  private readonly stopping = new AbortController();
  private unfollow: () => void = () => undefined;

  constructor(private readonly parts: GatewayParts) {
    const { bus, kube, logger, digest, notes, definitionsMs } = parts;
    this.state = new State(digest);
    this.changes = new PublishedChanges(bus);
    this.definitions = new Definitions(kube, notes, logger, () => this.signal.give(), definitionsMs);
    this.actions = new ActionRunner(bus, kube, this.state, logger, () => this.signal.give());
  }

  start(): this {
    void this.run();
    this.definitions.start();
    return this;
  }

  stop(): void {
    this.stopping.abort();
    this.actions.stop();
    this.definitions.stop();
    this.unfollow();
    this.signal.give();
  }

  private async run(): Promise<void> {
    const { bus, kube, logger } = this.parts;
    const changed = (): void => this.signal.give();
    const takers = takersOf(this.state);
    let isFollowing = false;
    for (let tries = 0; !this.stopping.signal.aborted;) {
      try {
        if (!isFollowing) {
          // Read what was published before looking at any object.
          await readViews(bus, takers);
          if (this.stopping.signal.aborted) return;
          const deleted = this.state.forgetView.bind(this.state);
          followViews(bus, takers, logger, this.stopping.signal, { changed, deleted });
          this.unfollow = followResources(kube, this.state, logger, changed);
          isFollowing = true;
        }
        const startMs = monotonicMs();
        const wakeAtMs = await this.turn();
        tries = 0;
        // A turn takes longer the more objects there are, so changes are collected for the next one.
        await new Promise((next) =>
          setTimeout(next, Math.min(MOST_MS, Math.max(LEAST_MS, 2 * (monotonicMs() - startMs)))).unref(),
        );
        await this.signal.wait(Math.min(LONGEST_MS, wakeAtMs - monotonicMs()));
      } catch (error) {
        logger.warn({ error }, 'cycle failed; trying again');
        await new Promise((resolve) => setTimeout(resolve, growingMs(tries, 200, AGAIN_MS)).unref());
        tries += 1;
      }
    }
  }

  /** When to take the next turn. */
  private async turn(): Promise<number> {
    this.state.definitions = this.definitions.troubleNow;
    this.state.admission = this.parts.admission?.();
    const steps = turn(this.state);
    for (let next = steps.next(); ; next = steps.next(await this.perform(next.value))) {
      if (next.done === true) return next.value;
      if (this.stopping.signal.aborted) return 0;
    }
  }

  private async perform(effect: GatewayEffect): Promise<GatewayAnswers[GatewayEffect['do']]> {
    switch (effect.do) {
      case 'now':
        return { nowMs: monotonicMs(), at: wallTime(), debounceMs: this.parts.debounceMs };
      case 'read-changes':
        return this.changes.read(effect.changes);
      case 'last-change':
        return this.changes.last();
      case 'publish': {
        const change = await this.changes.publish(effect.batch, effect.after);
        if (change !== undefined) this.parts.logger.info({ change, bytes: effect.batch.text.length }, 'published');
        return change;
      }
      case 'begin':
        return this.actions.begin(effect.actions);
    }
  }
}
