import type { Fact } from '#libs/contracts';
import {
  atOnce,
  snapshotOf,
  type Answer,
  type Copy,
  type LeadershipStatus,
  type Need,
  type NewSnapshot,
} from '#libs/engine';
import { ServiceHost, type Companion } from './service-host.js';
import { CONNECTING_MS, ServiceProcess } from './service-process.js';

type Phase = LeadershipStatus['phase'];

/** A process is killed before this step, counted from now on, and in this phase of its leadership if one is given. */
interface Death {
  steps: number;
  readonly phase: Phase | undefined;
  readonly onDeath: () => void;
}

/** One copy of a service. Its processes run one after another. */
export class ServiceCopy<
  S = unknown,
  I extends object = object,
  N extends Need = Need,
  G = unknown,
> extends ServiceHost<S, I, N, G> {
  alive = true;
  readonly companion: Companion | undefined;
  private death: Death | undefined;
  private process!: ServiceProcess<S, I, N, G>;
  private position = 0;

  constructor(...place: ConstructorParameters<typeof ServiceHost<S, I, N, G>>) {
    super(...place);
    this.companion = this.kind.companion?.(this);
    this.start();
  }

  get copy(): Copy<S, I, N, G> {
    return this.process.service.copy;
  }

  get leading(): boolean {
    return this.alive && this.process.service.leading;
  }

  /** Whether it leads or is about to lead. */
  get elected(): boolean {
    const { status } = this.process.service;
    return this.leading || status.phase === 'taking-over' || (status.phase === 'starting' && status.elected);
  }

  /** Kills it in the middle of its work, after this many more steps. */
  dieAfter(steps: number, onDeath: () => void, phase?: Phase): void {
    this.death = { steps, onDeath, phase };
    this.process.wake();
  }

  dies(): boolean {
    if (this.death === undefined) return false;
    const { phase, onDeath } = this.death;
    if (phase !== undefined && phase !== this.process.service.status.phase) return false;
    if (this.death.steps-- > 0) return false;
    this.kill();
    onDeath();
    return true;
  }

  kill(): void {
    this.death = undefined;
    this.world.trace(() => `${this.name} killed`);
    this.process.kill();
    this.alive = false;
  }

  /** Restarts it from the offered snapshot, from a stored one, or from the start of the ledger. */
  start(offered?: NewSnapshot): void {
    this.alive = true;
    this.process = new ServiceProcess(this, offered);
    this.world.trace(() => `${this.name} started${offered === undefined ? '' : ' from a snapshot'}`);
    this.process.start();
  }

  snapshot(): NewSnapshot {
    return atOnce(snapshotOf(this.copy));
  }

  lead(): void {
    if (!this.alive) return;
    this.process.service.take({ type: 'elected' });
    this.process.nudge();
  }

  follow(): void {
    if (this.alive) this.process.service.take({ type: 'deposed' });
  }

  /** Reads some of its inputs again, like a reader that was recreated. */
  rewind(messages: number): void {
    this.position = Math.max(0, this.position - messages);
    this.process.wake();
  }

  disconnect(): void {
    if (!this.connected) return;
    this.connected = false;
    if (this.alive) this.process.service.take({ type: 'connection-changed' });
  }

  reconnect(): void {
    if (this.connected) return;
    this.connected = true;
    if (this.leading) this.leadingSinceMs = this.monotonicMs;
    this.process.nudge();
    this.process.wake();
  }

  /** A fact was appended, or an input was stored. */
  notify(what: Fact['type'] | 'changes' | 'reports'): void {
    // Every second copy folds all the time, as all copies do in production. The others fold only when they start to
    // lead.
    if (this.index === 1 && this.connected) this.process.nudge();
    if (what === this.kind.stream || this.reads.has(what)) this.process.wake();
  }

  /** Sends it a request. The answer is undefined if it dies or stops leading. */
  request(input: I, reply: (answer: Answer | undefined) => void): void {
    if (!this.leading || !this.connected) return reply(undefined);
    this.process.service.submit(input, { resolve: reply, reject: () => reply(undefined) });
    this.process.wake();
  }

  /** The same for inputs of its own shell. Waits for the connection. There is no answer if it stops leading. */
  submit(input: I, settled: () => void): void {
    if (!this.leading) return;
    if (!this.connected) return this.world.clock.after(CONNECTING_MS, () => this.submit(input, settled));
    this.request(input, () => settled());
  }

  /** Reads from a state that contains the whole ledger. There is no answer if it stops leading. */
  query<T>(read: (state: S) => T, then: (value: T) => void): void {
    if (!this.leading) return;
    this.process.service.query(read, { resolve: then, reject: () => undefined });
    this.process.wake();
  }

  wake(): void {
    this.process.wake();
  }

  feed(): void {
    const { stream, read } = this.kind;
    if (stream === undefined || read === undefined) return;
    this.copy.inputs.push(...read(this.world.bus, this.position, this.copy.state));
    this.position = this.world.bus[stream].length;
    if (this.kind.core.name === 'scheduler') this.world.bus.noteRead(this.world.clock.nowMs);
  }

  changed(status: LeadershipStatus, before: LeadershipStatus): void {
    const { service } = this.process;
    if (status.phase === 'leading' && before.phase !== 'leading') {
      this.leadingSinceMs = this.monotonicMs;
      this.position = service.cursor;
      this.world.trace(() => `${this.name} leads`);
    }
    if (before.phase !== 'leading' || status.phase === 'leading') return;
    this.companion?.ended();
    this.leadingSinceMs = undefined;
    service.giveBack(new Error(`${this.name} leads no more`));
  }
}
