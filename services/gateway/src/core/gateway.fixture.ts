import { createHash } from 'node:crypto';
import { changeId, type ChangeView, type FragmentRef, type RolloutView } from '#libs/contracts';
import { pictureTextOf } from '#libs/testing';
import { decide, type Batch, type GatewayDecision, type GatewayAction, type Timing } from './gateway.js';
import { look, turn, type GatewayAnswers, type GatewayEffect } from './turn.js';
import type { ObservedObject, Status } from './resource.js';
import { State, type RolloutResource } from './state.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
export const DEBOUNCE_MS = 1_000;
const REST_MS = 5 * 60_000;

/** The content of a change, as it was published. */
export interface PublishedBody {
  readonly apply: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly spec: { readonly content?: string };
  }[];
  readonly delete: readonly FragmentRef[];
}

/** An API server and a merger in memory, and a gateway that works with them. It may be restarted at any time. */
export class GatewayWorld {
  state = new State(sha256);
  nowMs = 10_000;
  /** The objects of the API server. */
  readonly objects = new Map<string, ObservedObject>();
  readonly rollouts = new Map<string, RolloutResource>();
  /** Everything that was published, by any source. */
  readonly published: { readonly text: string; readonly source: string; readonly id: string }[] = [];
  readonly views = new Map<string, ChangeView>();
  readonly rolloutViews = new Map<string, RolloutView>();
  /** Every action that was carried out. */
  readonly actions: GatewayAction[] = [];
  /** The API server refuses finalizers for these. */
  readonly unheld = new Set<string>();
  private readonly endedMs = new Map<string, number>();
  private started = 0;
  private revision = 0;
  private ledger = 0;

  /** A user applies a File. */
  apply(name: string, content: string, more: Partial<ObservedObject> = {}): this {
    const before = this.objects.get(`File/${name}`);
    const spec = { nodeSelector: {}, path: `/etc/${name}`, content, ...(more.spec as object | undefined) };
    const isNew = JSON.stringify(before?.spec) !== JSON.stringify(spec);
    return this.put({
      kind: 'File',
      name,
      uid: before?.uid ?? `u${(this.revision += 1)}`,
      generation: (before?.generation ?? 0) + (isNew ? 1 : 0),
      labels: {},
      deleting: before?.deleting ?? false,
      finalizers: before?.finalizers ?? [],
      retry: before?.retry ?? '',
      status: before?.status,
      ...more,
      spec,
      revision: '',
    });
  }

  edit(name: string, change: Partial<ObservedObject>): this {
    const before = this.objects.get(`File/${name}`);
    return before === undefined ? this : this.put({ ...before, ...change });
  }

  /** A user deletes it. It is gone at once only without finalizers. */
  remove(name: string): this {
    const before = this.objects.get(`File/${name}`);
    if (before === undefined || before.deleting) return this;
    if (before.finalizers.length > 0) return this.put({ ...before, deleting: true, generation: before.generation + 1 });
    this.objects.delete(`File/${name}`);
    this.state.gone(before, this.nowMs);
    return this;
  }

  /** Another source publishes. */
  publish(body: object, source = 'cli'): string {
    this.published.push({ text: JSON.stringify(body), source, id: '' });
    return changeId(this.published.length);
  }

  /** The merger reads what was published, and shows its state. */
  show(change: string, phase: ChangeView['phase'], more: Partial<ChangeView> = {}): this {
    const body = this.bodyOf(change);
    const view = {
      change,
      phase,
      source: this.published[Number(change.slice(1)) - 1]?.source ?? '',
      ledger: (this.ledger += 1),
      message: '',
      author: '',
      waitsFor: [],
      needs: [],
      needsUntilMs: 0,
      attempt: 1,
      nodes: 2,
      unchanged: 0,
      pools: {},
      reasons: [],
      warnings: [],
      outcome: '',
      reason: '',
      generation: 0,
      retryOf: '',
      acceptedAt: '',
      endedAt: '',
      apply: body.apply.map(({ kind, metadata }) => ({ kind, name: metadata.name })),
      delete: [...body.delete],
      ...more,
    } as ChangeView;
    this.views.set(change, view);
    if (phase === 'ended' || phase === 'rejected') this.endedMs.set(change, this.nowMs);
    this.state.show(view, this.nowMs);
    return this;
  }

  rollout(change: string, view: Partial<RolloutView>): this {
    const whole = {
      change,
      phase: 'rolling',
      ledger: 0,
      paused: false,
      nodes: 2,
      applied: 0,
      failed: 0,
      unknown: 0,
      deferred: 0,
      pending: 2,
      maxFailures: 0,
      reason: '',
      pools: {},
      worst: [],
      stalledBy: [],
      startedAt: '',
      endedAt: '',
      supersededBy: '',
      aborted: false,
      ...view,
    } as RolloutView;
    this.rolloutViews.set(change, whole);
    this.state.rollouts.set(change, whole);
    return this;
  }

  bodyOf(change: string): PublishedBody {
    const body = JSON.parse(this.published[Number(change.slice(1)) - 1]?.text ?? '{}') as Partial<PublishedBody>;
    return { apply: body.apply ?? [], delete: body.delete ?? [] };
  }

  /** What the gateway published, one line each. */
  get lines(): readonly string[] {
    return this.published.flatMap(({ source }, i) =>
      source === 'kubernetes' ? [lineOf(this.bodyOf(changeId(i + 1)))] : [],
    );
  }

  /** One decision, after reading all that it needs. It must leave the state unchanged. */
  look(): GatewayDecision {
    this.run(look(this.state));
    const before = pictureTextOf(this.state, true);
    const timing = this.perform({ do: 'now' }) as Timing;
    const decided = decide(this.state, timing);
    expect(pictureTextOf(this.state, true)).toBe(before);
    return decided;
  }

  private run<T>(steps: Generator<GatewayEffect, T, GatewayAnswers[GatewayEffect['do']]>): T {
    for (let next = steps.next(); ; next = steps.next(this.perform(next.value)))
      if (next.done === true) return next.value;
  }

  /** Takes turns until nothing is left to do now. Returns when to take the next. */
  private turns(): number {
    for (let rounds = 0; rounds <= 50; rounds += 1) {
      this.started = 0;
      this.look();
      const wakeAtMs = this.run(turn(this.state));
      if (wakeAtMs !== 0 && this.started === 0) return wakeAtMs;
    }
    throw new Error(`it never comes to rest: ${this.lines.join('; ')}`);
  }

  act(): this {
    this.turns();
    return this;
  }

  /** Acts, advances the time to the next action, and repeats until nothing happens for a while. */
  rest(): this {
    const untilMs = this.nowMs + REST_MS;
    for (let rounds = 0; rounds < 50; rounds += 1) {
      const wakeAtMs = this.turns();
      if (wakeAtMs > untilMs) return this;
      this.nowMs = Math.max(this.nowMs, wakeAtMs);
    }
    throw new Error('it never comes to rest');
  }

  /** Another copy starts with the existing objects and views. */
  restart(): this {
    this.state = new State(sha256);
    for (const view of this.views.values()) this.state.show(view, this.endedMs.get(view.change) ?? 0);
    for (const [change, view] of this.rolloutViews) this.state.rollouts.set(change, view);
    this.state.list('File', [...this.objects.values()], this.nowMs);
    for (const rollout of this.rollouts.values()) this.state.hearRollout(rollout);
    this.state.listedKinds.add('Rollout');
    return this;
  }

  status(name: string): Status {
    return this.objects.get(`File/${name}`)?.status ?? {};
  }

  /** `True Committed`, for the condition of that type. */
  condition(name: string, type: string): string {
    const found = this.status(name).conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  private put(object: ObservedObject): this {
    const whole = { ...object, revision: String((this.revision += 1)) };
    this.objects.set(`File/${object.name}`, whole);
    this.state.hear(whole, this.nowMs);
    return this;
  }

  private perform(effect: GatewayEffect): GatewayAnswers[GatewayEffect['do']] {
    switch (effect.do) {
      case 'now':
        return { nowMs: this.nowMs, at: `t${this.nowMs}`, debounceMs: DEBOUNCE_MS };
      case 'read-changes':
        return effect.changes.map((change) => this.published[Number(change.slice(1)) - 1]?.text ?? '');
      case 'last-change':
        return this.published.length;
      case 'publish':
        return this.take(effect.batch);
      case 'begin':
        this.started += effect.actions.length;
        return effect.actions.forEach((action) => this.carryOut(action));
    }
  }

  private take(batch: Batch): string {
    expect(this.published.map(({ id }) => id)).not.toContain(batch.id);
    this.published.push({ text: batch.text, source: 'kubernetes', id: batch.id });
    return changeId(this.published.length);
  }

  private carryOut(action: GatewayAction): void {
    this.actions.push(action);
    switch (action.do) {
      case 'hold':
        if (this.unheld.has(action.resource.name))
          return this.state.failed(`finalizer ${action.resource.id}`, this.nowMs);
        this.edit(action.resource.name, { finalizers: action.finalizers });
        return this.state.did(`finalizer ${action.resource.id}`, this.nowMs);
      case 'release':
        this.objects.delete(action.resource.id);
        return this.state.gone(action.resource, this.nowMs);
      case 'show':
        this.edit(action.resource.name, { status: action.status });
        return this.state.did(`status ${action.resource.id}`, this.nowMs);
      case 'make-rollout':
        return this.putRollout({
          name: action.change,
          uid: action.change,
          generation: 1,
          revision: '',
          paused: undefined,
          deleting: false,
          status: undefined,
        });
      case 'show-rollout':
        this.putRollout({ ...(this.rollouts.get(action.change) as RolloutResource), status: action.status });
        return this.state.did(`status Rollout/${action.change}`, this.nowMs);
      case 'remove-rollout':
        this.rollouts.delete(action.change);
        return void this.state.rolloutResources.delete(action.change);
      case 'steer':
        this.state.steered.set(action.change, { generation: action.generation, refusal: '' });
        return void this.rollout(action.change, { paused: action.pause });
    }
  }

  putRollout(rollout: RolloutResource): void {
    const whole = { ...rollout, revision: String((this.revision += 1)) };
    this.rollouts.set(rollout.name, whole);
    this.state.hearRollout(whole);
  }
}

/** `+a=1 +b=2 -c`: what a change applies and deletes. */
function lineOf(body: PublishedBody): string {
  return [
    ...body.apply.map(({ metadata, spec }) => `+${metadata.name}=${spec.content}`),
    ...body.delete.map(({ name }) => `-${name}`),
  ].join(' ');
}
