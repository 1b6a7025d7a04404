import type { Bus } from '#libs/nats';
import { isMissingRight, type Kube, type ObjectEvent, type ObjectOutcome } from '#libs/kube';
import { API_VERSION, ROLLOUT_KIND } from '#libs/manifests';
import { monotonicMs, wallTime, type Logger } from '#libs/process';
import { eventsOf, type GatewayAction, type State, type Status } from '../core/index.js';
import { Lane } from './lane.js';
import { collectionOf, heardOf, pathOf, rolloutOf } from './seen-objects.js';

/** The field manager: fields under this name are the gateway's. */
const MANAGER = 'sluice-gateway';
const AT_ONCE = 8;

/** The most events that wait: with thousands of objects, people look at their status. */
const [MOST_EVENTS, EVENTS_AT_ONCE] = [1_000, 2];

/**
 * Carries out actions, a few at a time. An action that fails is tried again later; a slow one delays neither reading
 * nor publishing. Status writes have a lane of their own, so that they never delay the finalizer that publishing waits
 * for.
 */
export class ActionRunner {
  private readonly statusLane = new Lane<GatewayAction>(AT_ONCE, (action) => this.one(action));
  private readonly lane = new Lane<GatewayAction>(AT_ONCE, (action) => this.one(action));
  private readonly eventLane = new Lane<ObjectEvent>(EVENTS_AT_ONCE, (event) => this.write(event), MOST_EVENTS);
  private complaint = '';

  constructor(
    private readonly bus: Bus,
    private readonly kube: Kube,
    private readonly state: State,
    private readonly logger: Logger,
    private readonly changed: () => void,
  ) {}

  begin(actions: readonly GatewayAction[]): void {
    for (const action of actions) this.state.begins(keyOf(action));
    for (const action of actions)
      (action.do === 'show' || action.do === 'show-rollout' ? this.statusLane : this.lane).add(action);
  }

  /** Finishes the actions in progress and starts no others. */
  stop(): void {
    for (const lane of [this.statusLane, this.lane, this.eventLane]) lane.stop();
  }

  private async one(action: GatewayAction): Promise<void> {
    const key = keyOf(action);
    try {
      await this.act(action);
      this.state.did(key, monotonicMs());
    } catch (error) {
      this.state.failed(key, monotonicMs());
      // A missing right was already logged, once.
      this.logger[isMissingRight(error) ? 'debug' : 'warn'](
        { error, what: key },
        `${key} failed and is tried again: ${(error as Error).message}`,
      );
    }
    this.changed();
  }

  private async act(action: GatewayAction): Promise<void> {
    switch (action.do) {
      case 'hold':
      case 'release': {
        const { kind, name } = action.resource;
        return this.take(
          kind,
          await this.kube.writeFinalizers(pathOf(kind, name), action.resource, action.finalizers, MANAGER),
        );
      }
      case 'show':
        return this.show(action.resource, action.resource.status, action.status);
      case 'make-rollout': {
        const { change, source } = action;
        const body = {
          apiVersion: API_VERSION,
          kind: ROLLOUT_KIND,
          metadata: { name: change, labels: { 'sluice.dev/source': source } },
          spec: {},
        };
        return this.take(ROLLOUT_KIND, await this.kube.makeObject(collectionOf(ROLLOUT_KIND), body, MANAGER));
      }
      case 'show-rollout': {
        const { change: name, uid, status } = action;
        return this.show({ kind: ROLLOUT_KIND, name, uid }, this.state.rolloutResources.get(name)?.status, status);
      }
      case 'remove-rollout':
        return this.kube.deleteObject(pathOf(ROLLOUT_KIND, action.change), action.uid);
      case 'steer':
        return this.steer(action);
    }
  }

  private async show({ kind, name, uid }: NamedObject, before: Status | undefined, status: Status): Promise<void> {
    const about = { apiVersion: API_VERSION, kind, name, uid };
    const outcome = await this.kube.applyStatus(pathOf(kind, name), { ...about, status }, MANAGER);
    if (typeof outcome !== 'string')
      for (const event of eventsOf(about, before, status, this.state.digest))
        this.eventLane.add({ ...event, about, at: wallTime() });
    return this.take(kind, outcome);
  }

  /** An event that cannot be written is dropped, and delays nothing. */
  private async write(event: ObjectEvent): Promise<void> {
    try {
      await this.kube.tellEvent(event, MANAGER);
      this.complaint = '';
    } catch (error) {
      const { message } = error as Error;
      // If thousands fail for the same reason, it is logged once.
      if (message !== this.complaint)
        this.logger.warn({ error, event: event.name }, `events cannot be written: ${message}`);
      this.complaint = message;
    }
  }

  /** Uses the answer of the API server, which comes sooner than the watch event. */
  private take(kind: string, outcome: ObjectOutcome): void {
    if (typeof outcome === 'string') return;
    // The last finalizer is gone, and with it the object: the watch reports that.
    if (outcome.deleting && outcome.finalizers.length === 0) return;
    if (kind === ROLLOUT_KIND) this.state.hearRollout(rolloutOf(outcome));
    else this.state.hear(heardOf(kind, outcome), monotonicMs());
  }

  private async steer({ change, generation, pause }: GatewayAction & { readonly do: 'steer' }): Promise<void> {
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

interface NamedObject {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** The key by which the core limits the rate. */
function keyOf(action: GatewayAction): string {
  switch (action.do) {
    case 'hold':
    case 'release':
      return `finalizer ${action.resource.id}`;
    case 'show':
      return `status ${action.resource.id}`;
    case 'make-rollout':
    case 'remove-rollout':
      return `rollout ${action.change}`;
    case 'show-rollout':
      return `status Rollout/${action.change}`;
    case 'steer':
      return `steer ${action.change}`;
  }
}
