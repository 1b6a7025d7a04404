import type { Fact } from '#libs/contracts';
import {
  drive,
  keepSnapshot,
  life,
  readSnapshot,
  RefoldError,
  ServiceCopy as Life,
  snapshotOf,
  type Answer,
  type AppendResult,
  type Copy,
  type Core,
  type Effects,
  type LeadershipStatus,
  type Need,
  type NewSnapshot,
  type Program,
  type ServiceEffect,
  type SnapshotInfo,
  type SnapshotWritePort,
  type Tail,
  type ViewKey,
  type ViewWrite,
} from '#libs/engine';
import { Chance } from './chance.js';
import type { SimBus } from './bus.js';
import type { Surroundings } from './surroundings.js';

/** How one kind of service runs in the simulation. */
export interface ServiceKind<S, I extends object, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  /** The stream of its inputs. */
  readonly stream?: 'changes' | 'reports';
  /** The inputs stored after a position in it. */
  readonly read?: (bus: SimBus, after: number, state: S) => readonly I[];
  /** What its shell does in addition, for each copy. */
  readonly companion?: ((copy: ServiceCopy<S, I, N, G>) => Companion) | undefined;
}

/** What a copy of a service does besides its cycle, as its shell does in production. */
export interface Companion {
  /** After whatever this copy folded or decided while it leads; `ended` when it leads no more. */
  follow(): void;
  ended(): void;
}

const CONNECTING_MS = 500;
/** What the world does at once. */
const INSTANT: ReadonlySet<ServiceEffect<never>['do']> = new Set([
  'pause',
  'show-state',
  'stand',
  'log',
  'keep',
  'give-back',
  'follow',
]);

/** One copy of a service: a process that can be killed between any two steps of the engine's program. */
export class ServiceCopy<S = unknown, I extends object = object, N extends Need = Need, G = unknown> {
  alive = true;
  connected = true;
  leadingSinceMs: number | undefined;
  /** By how much the wall clock of its machine is wrong. */
  wallSkewMs = 0;
  /** It is killed before its so-manieth step from now on, in this phase of its leadership if one is named. */
  private fated: { steps: number; readonly phase: Phase | undefined; readonly onDeath: () => void } | undefined;
  private life!: Life<S, I, N, G>;
  private program: Program<ServiceEffect<I>> | undefined;
  /** Of its process: what was begun in an earlier one comes to nothing. */
  private run = 0;
  private waiting = false;
  private asked = false;
  private position = 0;
  private offered: NewSnapshot | undefined;
  private keeping = false;
  private readonly replies = new Map<I, (answer: Answer | undefined) => void>();
  readonly reads: ReadonlySet<string>;
  private readonly companion: Companion | undefined;
  /** For what takes time before it leads: what is added there leaves all turns as they were. */
  private readonly early: Chance;

  constructor(
    readonly world: Surroundings,
    readonly kind: ServiceKind<S, I, N, G>,
    readonly index: number,
    private readonly skewMs: number,
  ) {
    this.reads = new Set(kind.core.reads);
    this.early = new Chance(world.seed, `before ${this.name} leads`);
    this.companion = kind.companion?.(this);
    this.start();
  }

  get copy(): Copy<S, I, N, G> {
    return this.life.copy;
  }

  get leading(): boolean {
    return this.alive && this.life.leading;
  }

  /** Whether it leads or is about to. */
  get elected(): boolean {
    const { status } = this.life;
    return this.leading || status.phase === 'taking-over' || (status.phase === 'starting' && status.elected);
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
  dieAfter(steps: number, onDeath: () => void, phase?: Phase): void {
    this.fated = { steps, onDeath, phase };
    this.wake();
  }

  /** Whether this was the last step of its life. */
  dies(): boolean {
    if (this.fated === undefined) return false;
    const { phase, onDeath } = this.fated;
    if (phase !== undefined && phase !== this.life.status.phase) return false;
    if (this.fated.steps-- > 0) return false;
    this.kill();
    onDeath();
    return true;
  }

  kill(): void {
    this.fated = undefined;
    this.run += 1;
    this.program = undefined;
    this.world.trace(() => `${this.name} killed`);
    this.life.take({ type: 'stopped' });
    this.alive = false;
  }

  /** Starts over: from the snapshot that is offered, or from those that are kept, else from the ledger's beginning. */
  start(offered?: NewSnapshot): void {
    const { snapshotFacts } = this.world.conditions;
    this.run += 1;
    this.alive = true;
    this.waiting = false;
    this.asked = false;
    this.keeping = false;
    this.offered = offered;
    const settings = snapshotFacts === 0 ? undefined : { everyFacts: snapshotFacts, everyMs: Infinity };
    this.life = new Life(this.kind.core, settings, (status, before) => this.changed(status, before));
    this.program = life(this.life);
    this.world.trace(() => `${this.name} started${offered === undefined ? '' : ' from a snapshot'}`);
    this.proceed(undefined);
  }

  snapshot(): NewSnapshot {
    return snapshotOf(this.copy);
  }

  lead(): void {
    if (!this.alive) return;
    this.life.take({ type: 'elected' });
    if (this.waiting && !this.leading) this.resume();
  }

  follow(): void {
    if (this.alive) this.life.take({ type: 'deposed' });
  }

  /** Reads some of its inputs once more, as after a reader that broke. */
  rewind(messages: number): void {
    this.position = Math.max(0, this.position - messages);
    this.wake();
  }

  disconnect(): void {
    if (!this.connected) return;
    this.connected = false;
    if (this.alive) this.life.take({ type: 'connection-changed' });
  }

  reconnect(): void {
    if (this.connected) return;
    this.connected = true;
    if (this.leading) this.leadingSinceMs = this.monotonicMs;
    if (this.waiting && !this.leading) this.resume();
    this.wake();
  }

  /** A fact was appended, or an input was stored. */
  hear(what: Fact['type'] | 'changes' | 'reports'): void {
    if (this.follows && this.connected && this.waiting && !this.leading) this.resume();
    if (what === this.kind.stream || this.reads.has(what)) this.wake();
  }

  /** Gives it a request; undefined as answer when it dies or leads no more. */
  request(input: I, reply: (answer: Answer | undefined) => void): void {
    if (!this.leading || !this.connected) return reply(undefined);
    this.replies.set(input, reply);
    this.copy.inputs.push(input);
    this.wake();
  }

  /** The same for what its own shell has seen: waits for the connection; nothing is answered when it leads no more. */
  submit(input: I, settled: () => void): void {
    if (!this.leading) return;
    if (!this.connected) return this.world.clock.after(CONNECTING_MS, () => this.submit(input, settled));
    this.request(input, () => settled());
  }

  /** Reads from a state that has seen all that is in the ledger now; nothing is answered when it leads no more. */
  query<T>(read: (state: S) => T, then: (value: T) => void): void {
    if (!this.leading) return;
    this.life.queries.push((state) => then(read(state)));
    this.wake();
  }

  /** Something may be new: takes a turn as soon as it can. */
  wake(): void {
    if (!this.leading || !this.connected) return;
    if (!this.waiting) {
      this.asked = true;
      return;
    }
    this.waiting = false;
    this.asked = false;
    const { run } = this;
    this.world.clock.after(this.world.chance.next() * 3, () => {
      if (run !== this.run) return;
      if (this.leading) this.feed();
      this.resume();
    });
  }

  private feed(): void {
    const { stream, read } = this.kind;
    if (stream !== undefined && read !== undefined) {
      this.copy.inputs.push(...read(this.world.bus, this.position, this.copy.state));
      this.position = this.world.bus[stream].length;
    }
    this.life.due = true;
  }

  private resume(): void {
    this.waiting = false;
    this.proceed(undefined);
  }

  private changed(status: LeadershipStatus, before: LeadershipStatus): void {
    if (status.phase === 'leading' && before.phase !== 'leading') {
      this.leadingSinceMs = this.monotonicMs;
      this.position = this.life.cursor;
      this.world.trace(() => `${this.name} leads`);
    }
    if (before.phase !== 'leading' || status.phase === 'leading') return;
    this.companion?.ended();
    this.leadingSinceMs = undefined;
    this.giveUp();
  }

  /** Callers that wait for an answer hear that there is none. */
  private giveUp(): void {
    const waiting = [...this.replies.values()];
    this.replies.clear();
    for (const reply of waiting) reply(undefined);
  }

  /** Runs its program up to the next effect that takes time. An error of the world is the program's. */
  private proceed(answer: unknown): void {
    const { run, program } = this;
    const goOn = (known: unknown): IteratorResult<ServiceEffect<I>, void> | undefined =>
      known instanceof RefoldError ? program?.throw(known) : program?.next(known);
    for (let next = goOn(answer); next !== undefined && next.done !== true;) {
      const effect = next.value;
      if (effect.do === 'wait') return this.wait(effect.untilMs);
      if (!this.isInstant(effect)) return this.later(effect);
      const known = this.perform(effect);
      // Somebody who heard of it may have been the death of this copy.
      if (run !== this.run) return;
      next = goOn(known);
    }
  }

  /** Before it leads no step takes time in fair conditions. */
  private isInstant(effect: ServiceEffect<I>): boolean {
    const { status } = this.life;
    if (INSTANT.has(effect.do)) return true;
    return (status.phase !== 'leading' || status.behind) && this.world.conditions.takeOverMs === 0;
  }

  private wait(untilMs: number | undefined): void {
    this.waiting = true;
    if (!this.leading) return;
    if (this.asked || this.life.due || this.life.queries.length > 0) return this.wake();
    if (untilMs === undefined) return;
    const { run } = this;
    this.world.clock.after(Math.max(1, untilMs - this.monotonicMs), () => {
      if (run === this.run && this.waiting) this.wake();
    });
  }

  private later(effect: ServiceEffect<I>): void {
    if (this.dies()) return;
    const { run } = this;
    const { clock, conditions, chance } = this.world;
    if (effect.do === 'views' && conditions.viewLateMs > 0) {
      this.world.fire('late-views');
      // One after the other: a copy may die when some are written and others not.
      for (const write of effect.writes)
        clock.after(chance.next() * conditions.viewLateMs, () => this.put(run, write, effect.ledger));
      clock.after(conditions.viewLateMs, () => this.carryOut(run, effect));
    } else clock.after(this.delayMs(effect), () => this.carryOut(run, effect));
  }

  private put(run: number, { key, value }: ViewWrite, ledger: number): void {
    if (run === this.run && this.connected) this.writeView(key, value, ledger);
    else if (run === this.run) this.world.clock.after(CONNECTING_MS, () => this.put(run, { key, value }, ledger));
  }

  /** Without a connection a step waits, and is tried again. */
  private carryOut(run: number, effect: ServiceEffect<I>, tries = 0): void {
    if (run !== this.run) return;
    if (this.connected) {
      const answer = tries > 0 && effect.do === 'append' ? { outcome: 'unclear' } : this.perform(effect);
      if (run === this.run) this.proceed(answer);
      return;
    }
    // What was sent before the connection broke may have arrived all the same; nobody hears of it before it is back.
    if (tries === 0 && effect.do === 'append' && this.world.chance.happens(0.5)) this.append(effect);
    this.world.clock.after(CONNECTING_MS, () => this.carryOut(run, effect, tries + 1));
  }

  private delayMs(effect: ServiceEffect<I>): number {
    const { world, life: service } = this;
    if (service.status.phase !== 'leading' || service.status.behind)
      return this.early.next() * world.conditions.takeOverMs;
    if (effect.do === 'now') return 0;
    return effect.do === 'back-off' ? 20 + world.chance.next() * 50 : world.delayMs();
  }

  private perform(effect: ServiceEffect<I>): unknown {
    const { world } = this;
    const { bus } = world;
    switch (effect.do) {
      case 'read':
        return this.read(effect.after);
      case 'catch-up':
        return this.tail(effect.after, bus.last);
      case 'now':
        return { monotonicMs: this.monotonicMs, leadingSinceMs: this.leadingSinceMs };
      case 'append':
        return this.append(effect);
      case 'views':
        if (world.mutant?.trustsViews === true && !this.leading) return this.monotonicMs;
        for (const { key, value } of effect.writes) this.writeView(key, value, effect.ledger);
        return this.monotonicMs;
      case 'settle':
        for (const input of effect.inputs) {
          this.replies.get(input)?.(effect.answers.get(input));
          this.replies.delete(input);
        }
        return undefined;
      case 'show-state':
        return this.companion?.follow();
      case 'bounds':
        return { first: bus.first, last: bus.last };
      case 'read-voided':
        return new Map();
      case 'is-voided':
        return false;
      case 'load-views':
        return [{ bucket: 'any', key: undefined, ledger: bus.highestView }];
      case 'highest-view':
        return bus.highestView;
      case 'input-end':
        return this.kind.stream === undefined
          ? undefined
          : { stream: this.kind.stream, last: bus[this.kind.stream].length };
      case 'list-snapshots':
        return [...(this.offered === undefined ? [] : [offer(this.offered)]), ...bus.snapshotsOf(this.kind.core.name)];
      case 'read-snapshot':
        return this.readSnapshot(effect.snapshot);
      case 'keep':
        return this.keep(effect.snapshot);
      case 'give-back':
        throw effect.error;
      case 'log':
        if (effect.level === 'error') this.failed(effect.text, effect.details);
        return undefined;
      case 'follow':
      case 'stand':
      case 'wait':
      case 'back-off':
      case 'pause':
        return undefined;
      case 'read-configs':
        return bus.blobPort['read-configs'](effect);
      case 'put-configs':
        return bus.blobPort['put-configs'](effect);
      case 'put-targets':
        return bus.blobPort['put-targets'](effect);
    }
  }

  /** In production a person reads it in the log; here it is the end of the run. */
  private failed(text: string, details: object): void {
    const { error } = details as { readonly error?: unknown };
    if (error instanceof Error) throw error;
    this.world.onHalt(this, text);
    throw new Error(`${this.name}: ${text}`);
  }

  private readSnapshot({ name }: SnapshotInfo): ReturnType<typeof readSnapshot> {
    const text = name === OFFERED ? this.offered?.text : this.world.bus.snapshots.get(name)?.text;
    if (text === undefined) this.world.fire('torn-snapshots');
    return text === undefined ? undefined : readSnapshot(text);
  }

  /** Next to the work, step by step; a copy that dies meanwhile leaves the half of it. */
  private keep(snapshot: NewSnapshot): boolean {
    if (this.keeping) return false;
    this.keeping = true;
    const { run, world } = this;
    const { bus, clock, conditions } = world;
    const carry = (effect: Effects<SnapshotWritePort>, answer: (known?: unknown) => void): void => {
      if (run !== this.run) return;
      switch (effect.do) {
        case 'bounds':
          return answer({ first: bus.first, last: bus.last });
        case 'list-slots':
          return answer(effect.names.map((name) => ({ name, snapshot: bus.snapshots.get(name)?.info })));
        case 'write-snapshot': {
          const { name, sequence, loads, text } = effect;
          const info = { ...offer(snapshot), name, sequence, loads, storedMs: clock.nowMs };
          bus.snapshots.set(name, { info, text: undefined });
          clock.after(this.early.next() * conditions.takeOverMs, () => {
            if (run === this.run) bus.snapshots.set(name, { info, text });
            answer();
          });
        }
      }
    };
    drive(
      keepSnapshot(snapshot),
      (effect, answer) => clock.after(this.early.next() * conditions.delayMs, () => carry(effect, answer)),
      () => {
        if (run === this.run) this.keeping = false;
      },
    );
    return true;
  }

  private append(effect: ServiceEffect<I> & { readonly do: 'append' }): AppendResult {
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
    const upTo = world.bus.last;
    return { outcome: 'appended', entries: world.bus.entries(before, upTo, this.monotonicMs, this.reads), upTo };
  }

  private tail(after: number, upTo: number): Tail | RefoldError {
    const { bus } = this.world;
    if (after < upTo && after < bus.first - 1)
      return new RefoldError(`the ledger begins at ${bus.first}, and ${after} was folded`);
    return { entries: bus.entries(after, upTo, this.monotonicMs, this.reads), upTo };
  }

  /** What has arrived. The rest is on its way, and its arrival wakes the copy. */
  private read(after: number): Tail | RefoldError {
    const { world } = this;
    if (!this.leading) return this.tail(after, world.bus.last);
    const upTo = Math.max(after, world.bus.last - world.lag());
    if (upTo < world.bus.last) {
      world.fire('lagging-reads');
      world.clock.after(world.chance.next() * 200, () => this.wake());
    }
    return this.tail(after, upTo);
  }

  private writeView(key: ViewKey, value: ViewWrite['value'], ledger: number): void {
    const { revision, ledger: shown } = this.world.bus.revision(key);
    if (shown <= ledger) this.world.bus.putView(key, value, ledger, revision);
  }
}

type Phase = LeadershipStatus['phase'];
const OFFERED = 'offered';
const offer = ({ version, sequence, loads }: NewSnapshot): SnapshotInfo => ({
  name: OFFERED,
  version,
  sequence,
  loads,
  stored: undefined,
  storedMs: 0,
});
