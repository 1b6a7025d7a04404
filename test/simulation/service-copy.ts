import type { Fact } from '#libs/contracts';
import {
  fold,
  newCopy,
  parseViewKey,
  turn,
  type Answer,
  type Copy,
  type Core,
  type Effect,
  type Need,
  type ViewKey,
  type ViewWrite,
} from '#libs/kernel';
import { companionOf, type Companion } from './kubernetes/companion.js';
import type { World } from './world.js';

/** How one kind of service runs in the simulation. */
export interface ServiceKind<S, I extends object, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  /** The stream of its inputs. */
  readonly stream?: 'changes' | 'reports';
  gather(world: World, needs: readonly N[], state: S): Map<string, G>;
  /** The inputs stored after `position` in the stream that the service reads, and the new position. */
  inputs(world: World, state: S, position: number): { readonly inputs: readonly I[]; readonly position: number };
  /** Where to begin reading when it begins to lead. */
  position(state: S): number;
}

const CONNECTING_MS = 500;
const BETWEEN_TURNS_MS = 2;

/** One copy of a service: a process that can be killed between any two steps. */
export class ServiceCopy<S = unknown, I extends object = object, N extends Need = Need, G = unknown> {
  alive = true;
  leading = false;
  connected = true;
  leadingSinceMs: number | undefined;
  /** By how much the wall clock of its machine is wrong. */
  wallSkewMs = 0;
  /** It is killed before its so-manieth step from now on; where it stands then, it stands for good. */
  private fated: { steps: number; readonly onDeath: () => void } | undefined;
  copy: Copy<S, I, N, G>;
  private run = 0;
  private busy = false;
  private asked = false;
  private position = 0;
  private readonly replies = new Map<I, (answer: Answer | undefined) => void>();
  readonly reads: ReadonlySet<string>;
  /** What its shell does beside; nothing where there is no Kubernetes. */
  private readonly companion: Companion | undefined;

  constructor(
    readonly world: World,
    readonly kind: ServiceKind<S, I, N, G>,
    readonly index: number,
    private readonly skewMs: number,
  ) {
    this.copy = newCopy(kind.core);
    this.reads = new Set(kind.core.reads);
    this.companion = world.cluster === undefined ? undefined : companionOf(this as unknown as ServiceCopy);
  }

  /** Every second copy folds all the time, as all do in production; the others only when they begin to lead. */
  private get follows(): boolean {
    return this.index === 1;
  }

  get name(): string {
    return `${this.kind.core.name}${this.index}`;
  }

  /** Monotonic milliseconds of this process. */
  get monotonicMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  /** Dies in the middle of what it does: after so many steps more. */
  dieAfter(steps: number, onDeath: () => void): void {
    this.fated = { steps, onDeath };
    this.wake();
  }

  /** Whether this was the last step of its life. */
  dies(): boolean {
    if (this.fated === undefined || this.fated.steps-- > 0) return false;
    const { onDeath } = this.fated;
    this.kill();
    onDeath();
    return true;
  }

  kill(): void {
    this.companion?.ended();
    this.fated = undefined;
    this.alive = false;
    this.leading = false;
    this.run += 1;
    this.busy = false;
    this.world.trace(() => `${this.name} killed`);
    this.giveUp();
  }

  /** Starts anew: from a snapshot if one is given, else from the beginning of the ledger. */
  start(dumped?: { readonly folded: number; readonly state: unknown }): void {
    this.run += 1;
    this.alive = true;
    this.leading = false;
    this.busy = false;
    this.copy = newCopy(this.kind.core);
    if (dumped !== undefined) {
      this.copy.state = this.kind.core.load(JSON.parse(JSON.stringify(dumped.state)), this.monotonicMs);
      this.copy.folded = dumped.folded;
    }
    this.world.trace(() => `${this.name} started${dumped === undefined ? '' : ' from a snapshot'}`);
  }

  snapshot(): { readonly folded: number; readonly state: unknown } {
    return {
      folded: this.copy.folded,
      state: JSON.parse(JSON.stringify(this.kind.core.dump(this.copy.state))) as unknown,
    };
  }

  lead(): void {
    if (!this.alive || this.leading) return;
    this.leading = true;
    this.leadingSinceMs = this.monotonicMs;
    this.copy.inputs.length = 0;
    this.catchUp(this.world.bus.last);
    this.position = this.kind.position(this.copy.state);
    this.world.trace(() => `${this.name} leads`);
    this.checkViews();
    this.companion?.follow();
    this.wake();
  }

  /** Reads some of its inputs once more, as after a reader that broke. */
  rewind(messages: number): void {
    this.position = Math.max(0, this.position - messages);
    this.wake();
  }

  disconnect(): void {
    this.connected = false;
  }

  reconnect(): void {
    if (this.connected) return;
    this.connected = true;
    if (this.leading) this.leadingSinceMs = this.monotonicMs;
    this.wake();
  }

  /** A fact was appended, or an input was stored. */
  hear(what: Fact['type'] | 'changes' | 'reports'): void {
    if (this.follows && this.alive && this.connected && !this.leading) this.catchUp(this.world.bus.last);
    if (what === this.kind.stream || this.reads.has(what)) this.wake();
  }

  follow(): void {
    if (!this.leading) return;
    this.companion?.ended();
    this.leading = false;
    this.leadingSinceMs = undefined;
    this.run += 1;
    this.busy = false;
    this.copy.inputs.length = 0;
    this.giveUp();
  }

  /** Whoever waits for an answer hears that there is none. */
  private giveUp(): void {
    const waiting = [...this.replies.values()];
    this.replies.clear();
    for (const reply of waiting) reply(undefined);
  }

  /** Gives it a request; undefined as answer when it dies or leads no more. */
  request(input: I, reply: (answer: Answer | undefined) => void): void {
    if (!this.alive || !this.leading || !this.connected) return reply(undefined);
    this.replies.set(input, reply);
    this.copy.inputs.push(input);
    this.wake();
  }

  /** The same for what its own shell has seen: waits for the connection; nothing is answered when it leads no more. */
  submit(input: I, settled: () => void): void {
    if (!this.alive || !this.leading) return;
    if (!this.connected) return this.world.clock.after(CONNECTING_MS, () => this.submit(input, settled));
    this.request(input, () => settled());
  }

  /** Reads from a state that has seen all that is in the ledger now; between its turns. Nothing is answered when it leads no more. */
  query<T>(read: (state: S) => T, then: (value: T) => void): void {
    const { run } = this;
    if (!this.alive || !this.leading) return;
    if (this.busy || !this.connected)
      return this.world.clock.after(
        this.connected ? BETWEEN_TURNS_MS : CONNECTING_MS,
        () => run === this.run && this.query(read, then),
      );
    const before = this.copy.folded;
    this.catchUp(this.world.bus.last);
    if (this.copy.folded > before) this.wake();
    then(read(this.copy.state));
  }

  /** Something may be new: takes a turn as soon as it can. */
  wake(): void {
    if (!this.alive || !this.leading || !this.connected) return;
    if (this.busy) {
      this.asked = true;
      return;
    }
    this.busy = true;
    this.asked = false;
    const { run } = this;
    this.world.clock.after(this.world.chance.next() * 3, () => {
      if (run === this.run) this.turn();
    });
  }

  private turn(): void {
    const fed = this.kind.inputs(this.world, this.copy.state, this.position);
    this.copy.inputs.push(...fed.inputs);
    this.position = fed.position;
    this.proceed(turn(this.copy), undefined);
  }

  private proceed(steps: ReturnType<typeof turn<S, I, N, G>>, result: unknown): void {
    const next = steps.next(result as never);
    const { run } = this;
    if (next.done === true) {
      this.busy = false;
      this.companion?.follow();
      if (this.asked) this.wake();
      else this.sleep();
      return;
    }
    const effect = next.value;
    if (this.dies()) return;
    const { clock, weather, chance } = this.world;
    if (effect.do === 'views' && weather.viewLateMs > 0) {
      this.world.fire('late-views');
      // One after the other: a copy may die when some are written and others not.
      for (const write of effect.writes)
        clock.after(chance.next() * weather.viewLateMs, () => this.put(run, write, effect.ledger));
      clock.after(weather.viewLateMs, () => this.carryOut(run, steps, effect));
    } else clock.after(this.delayMs(effect), () => this.carryOut(run, steps, effect));
  }

  private put(run: number, { key, value }: ViewWrite, ledger: number): void {
    if (run === this.run && this.connected) this.writeView(key, value, ledger);
    else if (run === this.run) this.world.clock.after(CONNECTING_MS, () => this.put(run, { key, value }, ledger));
  }

  private carryOut(run: number, steps: ReturnType<typeof turn<S, I, N, G>>, effect: Effect<I, N>): void {
    if (run !== this.run) return;
    if (this.connected) return this.performed(run, steps, effect);
    // What was sent before the connection broke may have arrived all the same; nobody hears of it before it is back.
    if (effect.do === 'append' && this.world.chance.happens(0.5)) this.append(effect);
    this.retry(steps, effect);
  }

  /** Without a connection a step waits: it is tried again. */
  private retry(steps: ReturnType<typeof turn<S, I, N, G>>, effect: Effect<I, N>): void {
    const { run } = this;
    this.world.clock.after(CONNECTING_MS, () => {
      if (run !== this.run) return;
      if (!this.connected) return this.retry(steps, effect);
      if (effect.do === 'append') this.proceed(steps, { outcome: 'unclear' });
      else this.performed(run, steps, effect);
    });
  }

  /** Who hears an answer may be the death of this copy: then its turn is over. */
  private performed(run: number, steps: ReturnType<typeof turn<S, I, N, G>>, effect: Effect<I, N>): void {
    const result = this.perform(effect);
    if (run === this.run) this.proceed(steps, result);
  }

  private sleep(): void {
    const at = this.copy.wakeAtMs;
    if (at === undefined) return;
    const { run } = this;
    this.world.clock.after(Math.max(1, at - this.monotonicMs), () => {
      if (run === this.run && !this.busy) this.wake();
    });
  }

  private delayMs(effect: Effect<I, N>): number {
    return effect.do === 'now'
      ? 0
      : effect.do === 'back-off'
        ? 20 + this.world.chance.next() * 50
        : this.world.delayMs();
  }

  private perform(effect: Effect<I, N>): unknown {
    const { world } = this;
    switch (effect.do) {
      case 'read':
        return this.read(effect.after);
      case 'catch-up':
        return this.tail(effect.after, world.bus.last);
      case 'now':
        return { monotonicMs: this.monotonicMs, leadingSinceMs: this.leadingSinceMs };
      case 'gather':
        return this.kind.gather(world, effect.needs, this.copy.state);
      case 'append':
        return this.append(effect);
      case 'views':
        for (const { key, value } of effect.writes) this.writeView(key, value, effect.ledger);
        return this.monotonicMs;
      case 'settle':
        for (const input of effect.inputs) {
          this.replies.get(input)?.(effect.answers.get(input));
          this.replies.delete(input);
        }
        return undefined;
      case 'back-off':
        return undefined;
    }
  }

  private append(effect: Effect<I, N> & { readonly do: 'append' }): unknown {
    const { world } = this;
    const fate = world.appendFate();
    if (fate === 'lost') return { outcome: 'unclear' };
    const before = world.bus.last;
    const facts =
      effect.separate && effect.facts.length > 1
        ? effect.facts.slice(0, world.appendedOf(effect.facts.length))
        : effect.facts;
    const done = world.bus.append(facts, effect.expected, world.clock.nowMs + this.wallSkewMs);
    world.trace(() => `${this.name} ${done ? 'appends' : 'is refused'} ${facts.map((fact) => fact.type).join(' ')}`);
    if (fate === 'answer-lost') return { outcome: 'unclear' };
    if (!done || facts.length < effect.facts.length) return { outcome: 'refused' };
    return { outcome: 'appended', ...this.tail(before, world.bus.last) };
  }

  private tail(
    after: number,
    upTo: number,
  ): { readonly entries: ReturnType<World['bus']['entries']>; readonly upTo: number } {
    return { entries: this.world.bus.entries(after, upTo, this.monotonicMs, this.reads), upTo };
  }

  /** What has arrived. The rest is on its way, and its arrival wakes the copy. */
  private read(after: number): ReturnType<ServiceCopy['tail']> {
    const upTo = Math.max(after, this.world.bus.last - this.world.lag());
    if (upTo < this.world.bus.last) {
      this.world.fire('lagging-reads');
      this.world.clock.after(this.world.chance.next() * 200, () => this.wake());
    }
    return this.tail(after, upTo);
  }

  private catchUp(upTo: number): void {
    fold(this.copy, this.tail(this.copy.folded, upTo));
  }

  private writeView(key: ViewKey, value: never | Parameters<World['bus']['putView']>[1], ledger: number): void {
    const { revision, ledger: shown } = this.world.bus.revision(key);
    if (shown <= ledger) this.world.bus.putView(key, value, ledger, revision);
  }

  /** A copy that begins to lead brings up to date what another may have left unwritten. */
  private checkViews(): void {
    const { core } = this.kind;
    for (const text of core.viewKeys(this.copy.state)) {
      const key = parseViewKey(text);
      const value = core.view(this.copy.state, key);
      if (value === undefined) continue;
      this.writeView(key, value, this.copy.folded);
      core.shown?.(this.copy.state, key, this.monotonicMs);
    }
  }
}
