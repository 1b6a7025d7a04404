import type { Bus } from '#libs/bus';
import { isMissingRight, type Kube, type ObjectOutcome } from '#libs/kube';
import { API_VERSION, ROLLOUT_KIND } from '#libs/manifests';
import { monotonicMs, wallTime, type Logger } from '#libs/runtime';
import { toldBy, type Deed, type State, type Status } from '../core/index.js';
import { EventTeller } from './event-teller.js';
import { collectionOf, heardOf, pathOf, rolloutOf } from './seen-objects.js';

/** Named in managedFields: what it says is the gateway's, and nobody else's. */
const MANAGER = 'sluice-gateway';
const AT_ONCE = 8;

interface Lane {
  readonly waiting: Deed[];
  working: number;
}

/**
 * Carries out what was decided, a few at a time. One that fails is noted, and tried again later; one that takes long holds up neither looking nor publishing.
 * What is only shown has a lane of its own: status writes that nobody answers hold up nothing that something waits for, such as the finalizer without which nothing is published.
 */
export class Deeds {
  private readonly lanes: { readonly shown: Lane; readonly done: Lane } = {
    shown: { waiting: [], working: 0 },
    done: { waiting: [], working: 0 },
  };
  private stopped = false;
  private readonly events: EventTeller;

  constructor(
    private readonly bus: Bus,
    private readonly kube: Kube,
    private readonly state: State,
    private readonly logger: Logger,
    private readonly changed: () => void,
  ) {
    this.events = new EventTeller(kube, MANAGER, logger);
  }

  begin(deeds: readonly Deed[]): void {
    for (const deed of deeds) {
      this.state.begins(keyOf(deed));
      const isShown = deed.do === 'show' || deed.do === 'show-rollout';
      this.lanes[isShown ? 'shown' : 'done'].waiting.push(deed);
    }
    for (const lane of Object.values(this.lanes))
      while (lane.working < AT_ONCE && lane.waiting.length > 0) void this.work(lane);
  }

  /** What is under way is finished, and nothing more begun. */
  stop(): void {
    this.stopped = true;
    this.events.stop();
  }

  private async work(lane: Lane): Promise<void> {
    lane.working += 1;
    for (let deed = lane.waiting.shift(); deed !== undefined && !this.stopped; deed = lane.waiting.shift()) {
      await this.one(deed);
      this.changed();
    }
    lane.working -= 1;
  }

  private async one(deed: Deed): Promise<void> {
    const key = keyOf(deed);
    try {
      await this.act(deed);
      this.state.did(key, monotonicMs());
    } catch (error) {
      this.state.failed(key, monotonicMs());
      // A missing right was named, once.
      this.logger[isMissingRight(error) ? 'debug' : 'warn'](
        { error, what: key },
        `${key} failed, and is tried again: ${(error as Error).message}`,
      );
    }
  }

  private async act(deed: Deed): Promise<void> {
    switch (deed.do) {
      case 'hold':
      case 'release': {
        const { kind, name } = deed.resource;
        return this.take(
          kind,
          await this.kube.writeFinalizers(pathOf(kind, name), deed.resource, deed.finalizers, MANAGER),
        );
      }
      case 'show': {
        const { kind, name, uid } = deed.resource;
        const outcome = await this.kube.applyStatus(
          pathOf(kind, name),
          { apiVersion: API_VERSION, kind, name, uid, status: deed.status },
          MANAGER,
        );
        if (typeof outcome !== 'string') this.tell({ kind, name, uid }, deed.resource.status, deed.status);
        return this.take(kind, outcome);
      }
      case 'make-rollout': {
        const { change, source } = deed;
        const body = {
          apiVersion: API_VERSION,
          kind: ROLLOUT_KIND,
          metadata: { name: change, labels: { 'sluice.dev/source': source } },
          spec: {},
        };
        return this.take(ROLLOUT_KIND, await this.kube.makeObject(collectionOf(ROLLOUT_KIND), body, MANAGER));
      }
      case 'show-rollout': {
        const { change: name, uid, status } = deed;
        const before = this.state.rolloutResources.get(name)?.status;
        const outcome = await this.kube.applyStatus(
          pathOf(ROLLOUT_KIND, name),
          { apiVersion: API_VERSION, kind: ROLLOUT_KIND, name, uid, status },
          MANAGER,
        );
        if (typeof outcome !== 'string') this.tell({ kind: ROLLOUT_KIND, name, uid }, before, status);
        return this.take(ROLLOUT_KIND, outcome);
      }
      case 'remove-rollout':
        return this.kube.deleteObject(pathOf(ROLLOUT_KIND, deed.change), deed.uid);
      case 'steer':
        return this.steer(deed);
    }
  }

  private tell(
    object: { readonly kind: string; readonly name: string; readonly uid: string },
    before: Status | undefined,
    now: Status,
  ): void {
    for (const told of toldBy(object, before, now, this.state.digest))
      this.events.tell({ ...told, about: { apiVersion: API_VERSION, ...object }, at: wallTime() });
  }

  /** What the API server answered is as good as what a watch shows, and sooner. */
  private take(kind: string, outcome: ObjectOutcome): void {
    if (typeof outcome === 'string') return;
    // The last finalizer is off, and with it the object: the watch says so.
    if (outcome.deleting && outcome.finalizers.length === 0) return;
    if (kind === ROLLOUT_KIND) this.state.hearRollout(rolloutOf(outcome));
    else this.state.hear(heardOf(kind, outcome), monotonicMs());
  }

  private async steer({ change, generation, pause }: Deed & { readonly do: 'steer' }): Promise<void> {
    const reply = await this.bus.request(
      `ops.rollout.${pause ? 'pause' : 'resume'}`,
      JSON.stringify({ change, by: 'kubernetes', reason: `spec.paused of Rollout/${change}` }),
    );
    const { error } = JSON.parse(reply.string()) as {
      readonly error?: { readonly code: string; readonly message: string };
    };
    if (error?.code === 'unavailable' || error?.code === 'halted') throw new Error(error.message);
    this.state.steered.set(change, { generation, refusal: error?.message ?? '' });
  }
}

/** As the core paces it. */
function keyOf(deed: Deed): string {
  switch (deed.do) {
    case 'hold':
    case 'release':
      return `finalizer ${deed.resource.id}`;
    case 'show':
      return `status ${deed.resource.id}`;
    case 'make-rollout':
    case 'remove-rollout':
      return `rollout ${deed.change}`;
    case 'show-rollout':
      return `status Rollout/${deed.change}`;
    case 'steer':
      return `steer ${deed.change}`;
  }
}
