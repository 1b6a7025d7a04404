import { createHash } from 'node:crypto';
import { changeId, type ChangeView, type FragmentRef, type RolloutView } from '#libs/contracts';
import { contentsOf } from './changes.js';
import { decide, type Batch, type Decided, type Deed } from './gateway.js';
import type { Heard, Status } from './resource.js';
import { State, type RolloutResource } from './state.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
export const DEBOUNCE_MS = 1_000;
const REST_MS = 5 * 60_000;

/** What a change says, as it was published. */
export interface Said {
  readonly apply: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly spec: { readonly content?: string };
  }[];
  readonly delete: readonly FragmentRef[];
}

/** An API server and a merger in memory, and a gateway that looks at them; it may be started anew at any time. */
export class GatewayWorld {
  state = new State(sha256);
  nowMs = 10_000;
  /** What the API server has. */
  readonly objects = new Map<string, Heard>();
  readonly rollouts = new Map<string, RolloutResource>();
  /** What was published, by anybody. */
  readonly published: { readonly text: string; readonly source: string; readonly id: string }[] = [];
  readonly views = new Map<string, ChangeView>();
  readonly rolloutViews = new Map<string, RolloutView>();
  /** Every deed that was carried out. */
  readonly deeds: Deed[] = [];
  /** Of these the API server takes no finalizer. */
  readonly unheld = new Set<string>();
  private readonly endedMs = new Map<string, number>();
  private revision = 0;
  private ledger = 0;

  /** Somebody applies a File. */
  apply(name: string, content: string, more: Partial<Heard> = {}): this {
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

  edit(name: string, change: Partial<Heard>): this {
    const before = this.objects.get(`File/${name}`);
    return before === undefined ? this : this.put({ ...before, ...change });
  }

  /** Somebody deletes it: it goes at once only where nothing holds it. */
  remove(name: string): this {
    const before = this.objects.get(`File/${name}`);
    if (before === undefined || before.deleting) return this;
    if (before.finalizers.length > 0) return this.put({ ...before, deleting: true, generation: before.generation + 1 });
    this.objects.delete(`File/${name}`);
    this.state.gone(before, this.nowMs);
    return this;
  }

  /** Somebody publishes on another way. */
  publish(body: object, source = 'cli'): string {
    this.published.push({ text: JSON.stringify(body), source, id: '' });
    return changeId(this.published.length);
  }

  /** The merger takes what was published, and says where it stands. */
  stand(change: string, phase: ChangeView['phase'], more: Partial<ChangeView> = {}): this {
    const said = this.saidBy(change);
    const view = {
      change,
      phase,
      source: this.published[Number(change.slice(1)) - 1]?.source ?? '',
      ledger: (this.ledger += 1),
      message: '',
      author: '',
      behind: [],
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
      apply: said.apply.map(({ kind, metadata }) => ({ kind, name: metadata.name })),
      delete: [...said.delete],
      ...more,
    } as ChangeView;
    this.views.set(change, view);
    if (phase === 'ended') this.endedMs.set(change, this.nowMs);
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
      owed: 0,
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

  saidBy(change: string): Said {
    const body = JSON.parse(this.published[Number(change.slice(1)) - 1]?.text ?? '{}') as Partial<Said>;
    return { apply: body.apply ?? [], delete: body.delete ?? [] };
  }

  /** What the gateway published, each in a line. */
  get lines(): readonly string[] {
    return this.published.flatMap(({ source }, i) =>
      source === 'kubernetes' ? [lineOf(this.saidBy(changeId(i + 1)))] : [],
    );
  }

  /** One look, with all that it needs read. */
  look(): Decided {
    for (let tries = 0; tries < 100; tries += 1) {
      const decided = decide(this.state, { nowMs: this.nowMs, at: `t${this.nowMs}`, debounceMs: DEBOUNCE_MS });
      if (decided.unread.length === 0) return decided;
      for (const change of decided.unread) this.read(change);
    }
    throw new Error('it never has read enough');
  }

  /** Looks and acts until nothing is left to do now; a merger may be slow to show what was published. */
  act(): this {
    for (let rounds = 0; ; rounds += 1) {
      if (rounds > 50) throw new Error(`it never comes to rest: ${this.lines.join('; ')}`);
      const decided = this.look();
      const [batch] = decided.publish;
      if ((batch !== undefined || decided.deeds.some((deed) => deed.do === 'release')) && this.catchUp()) continue;
      if (batch !== undefined) {
        this.take(batch);
        continue;
      }
      for (const deed of decided.deeds) this.carryOut(deed);
      if (decided.deeds.length === 0) return this;
    }
  }

  /** Acts, lets time pass to whenever there is something to do, and so on until there is nothing for a while. */
  rest(): this {
    const untilMs = this.nowMs + REST_MS;
    for (let rounds = 0; rounds < 50; rounds += 1) {
      this.act();
      const { wakeAtMs } = this.look();
      if (wakeAtMs > untilMs) return this;
      this.nowMs = Math.max(this.nowMs, wakeAtMs);
    }
    throw new Error('it never comes to rest');
  }

  /** Another copy begins, from what there is. */
  restart(): this {
    this.state = new State(sha256);
    for (const view of this.views.values()) this.state.show(view, this.endedMs.get(view.change) ?? 0);
    for (const [change, view] of this.rolloutViews) this.state.rollouts.set(change, view);
    this.state.list('File', [...this.objects.values()], this.nowMs);
    for (const rollout of this.rollouts.values()) this.state.hearRollout(rollout);
    this.state.listed.add('Rollout');
    return this;
  }

  status(name: string): Status {
    return this.objects.get(`File/${name}`)?.status ?? {};
  }

  /** `True Committed`, of the condition of that type. */
  condition(name: string, type: string): string {
    const found = this.status(name).conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  private put(heard: Heard): this {
    const whole = { ...heard, revision: String((this.revision += 1)) };
    this.objects.set(`File/${heard.name}`, whole);
    this.state.hear(whole, this.nowMs);
    return this;
  }

  private read(change: string): void {
    this.state.index.read(change, contentsOf(this.published[Number(change.slice(1)) - 1]?.text ?? '', sha256));
  }

  /** Reads what no view shows; whether there was any. */
  private catchUp(): boolean {
    const unseen = this.published
      .map((_, i) => changeId(i + 1))
      .filter((change) => this.state.index.get(change) === undefined);
    for (const change of unseen) this.read(change);
    return unseen.length > 0;
  }

  private take(batch: Batch): void {
    expect(this.published.map(({ id }) => id)).not.toContain(batch.id);
    this.published.push({ text: batch.text, source: 'kubernetes', id: batch.id });
    this.read(changeId(this.published.length));
  }

  private carryOut(deed: Deed): void {
    this.deeds.push(deed);
    switch (deed.do) {
      case 'hold':
        if (this.unheld.has(deed.resource.name)) return this.state.failed(`finalizer ${deed.resource.id}`, this.nowMs);
        this.edit(deed.resource.name, { finalizers: deed.finalizers });
        return this.state.did(`finalizer ${deed.resource.id}`, this.nowMs);
      case 'release':
        this.objects.delete(deed.resource.id);
        return this.state.gone(deed.resource, this.nowMs);
      case 'show':
        this.edit(deed.resource.name, { status: deed.status });
        return this.state.did(`status ${deed.resource.id}`, this.nowMs);
      case 'make-rollout':
        return this.putRollout({
          name: deed.change,
          uid: deed.change,
          generation: 1,
          revision: '',
          paused: undefined,
          deleting: false,
          status: undefined,
        });
      case 'show-rollout':
        this.putRollout({ ...(this.rollouts.get(deed.change) as RolloutResource), status: deed.status });
        return this.state.did(`status Rollout/${deed.change}`, this.nowMs);
      case 'remove-rollout':
        this.rollouts.delete(deed.change);
        return void this.state.rolloutResources.delete(deed.change);
      case 'steer':
        this.state.steered.set(deed.change, { generation: deed.generation, refusal: '' });
        return void this.rollout(deed.change, { paused: deed.pause });
    }
  }

  putRollout(heard: RolloutResource): void {
    const whole = { ...heard, revision: String((this.revision += 1)) };
    this.rollouts.set(heard.name, whole);
    this.state.hearRollout(whole);
  }
}

/** `+a=1 +b=2 -c`: what a change applies and deletes. */
function lineOf(said: Said): string {
  return [
    ...said.apply.map(({ metadata, spec }) => `+${metadata.name}=${spec.content}`),
    ...said.delete.map(({ name }) => `-${name}`),
  ].join(' ');
}
