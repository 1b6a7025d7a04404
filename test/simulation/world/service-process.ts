import {
  life,
  RefoldError,
  ServiceCopy as Service,
  type Need,
  type NewSnapshot,
  type Program,
  type ServiceEffect,
  type ViewWrite,
} from '#libs/engine';
import type { ServiceHost } from './service-host.js';
import { ServicePorts } from './service-ports.js';

/** How long a copy without a connection waits before it tries again. */
export const CONNECTING_MS = 500;
/** Effects that take no time. */
const INSTANT: ReadonlySet<ServiceEffect<never>['do']> = new Set([
  'pause',
  'show-state',
  'stand',
  'log',
  'keep',
  'give-back',
  'follow',
]);

/**
 * One process of a copy. It runs the program of the engine in simulated time, and can be killed between any two steps.
 */
export class ServiceProcess<S, I extends object, N extends Need, G> {
  readonly service: Service<S, I, N, G>;
  /** After that, its pending steps have no effect. */
  private killed = false;
  private readonly program: Program<ServiceEffect<I>>;
  private readonly ports: ServicePorts<S, I, N, G>;
  private waiting = false;
  private isRequested = false;

  constructor(
    private readonly copy: ServiceHost<S, I, N, G>,
    offered: NewSnapshot | undefined,
  ) {
    const { snapshotFacts } = copy.world.conditions;
    const settings = snapshotFacts === 0 ? undefined : { everyFacts: snapshotFacts, everyMs: Infinity };
    this.service = new Service(copy.kind.core, settings, (status, before) => copy.changed(status, before));
    this.program = life(this.service);
    this.ports = new ServicePorts(copy, this.service, offered, (delayMs, run) => this.after(delayMs, run));
  }

  start(): void {
    this.goOn(this.program.next());
  }

  kill(): void {
    this.killed = true;
    this.service.take({ type: 'stopped' });
  }

  /** Before it leads: ends its wait. */
  nudge(): void {
    if (this.waiting && !this.killed && !this.copy.leading) this.resume();
  }

  /** While it leads: takes a turn as soon as it can. */
  wake(): void {
    const { copy } = this;
    if (!copy.leading || !copy.connected) return;
    if (!this.waiting) {
      this.isRequested = true;
      return;
    }
    this.waiting = false;
    this.isRequested = false;
    this.after(copy.world.chance.next() * 3, () => {
      if (copy.leading) {
        copy.feed();
        this.service.due = true;
      }
      this.resume();
    });
  }

  /** Schedules something unless it is killed before. */
  private after(delayMs: number, run: () => void): void {
    this.copy.world.clock.after(delayMs, () => {
      if (!this.killed) run();
    });
  }

  private resume(): void {
    this.waiting = false;
    this.goOn(this.program.next());
  }

  /** Runs its program up to the next effect that takes time. */
  private goOn(first: IteratorResult<ServiceEffect<I>, void>): void {
    for (let next = first; next.done !== true;) {
      const effect = next.value;
      if (effect.do === 'wait') return this.wait(effect.untilMs);
      if (!this.isInstant(effect)) return this.later(effect);
      const answered = this.carryOut(effect);
      // A listener may have killed this copy.
      if (this.killed) return;
      next = answered();
    }
  }

  /** The next step of the program, with the answer or the error of the world. Any other error ends the run. */
  private carryOut(effect: ServiceEffect<I>): () => IteratorResult<ServiceEffect<I>, void> {
    try {
      const answer = this.ports.perform(effect);
      return () => this.program.next(answer);
    } catch (error) {
      if (!(error instanceof RefoldError)) throw error;
      return () => this.program.throw(error);
    }
  }

  /** Before it leads, no step takes time in good conditions. */
  private isInstant(effect: ServiceEffect<I>): boolean {
    return INSTANT.has(effect.do) || (!this.isInTerm && this.copy.world.conditions.takeOverMs === 0);
  }

  private get isInTerm(): boolean {
    const { status } = this.service;
    return status.phase === 'leading' && !status.behind;
  }

  private wait(untilMs: number | undefined): void {
    const { copy, service } = this;
    this.waiting = true;
    if (!copy.leading) return;
    if (this.isRequested || service.due || service.queries.length > 0) return this.wake();
    if (untilMs === undefined) return;
    this.after(Math.max(1, untilMs - copy.monotonicMs), () => {
      if (this.waiting) this.wake();
    });
  }

  private later(effect: ServiceEffect<I>): void {
    if (this.copy.dies()) return;
    const { world } = this.copy;
    const { conditions, chance } = world;
    if (effect.do === 'views' && conditions.viewLateMs > 0) {
      world.fire('late-views');
      // One after the other: a copy may die between two of them.
      for (const write of effect.writes)
        this.after(chance.next() * conditions.viewLateMs, () => this.put(write, effect.ledger));
      this.after(conditions.viewLateMs, () => this.arrive(effect));
    } else this.after(this.delayMs(effect), () => this.arrive(effect));
  }

  private put(write: ViewWrite, ledger: number): void {
    if (this.copy.connected) this.ports.writeView(write, ledger);
    else this.after(CONNECTING_MS, () => this.put(write, ledger));
  }

  /** Without a connection, a step waits and is tried again. */
  private arrive(effect: ServiceEffect<I>, tries = 0): void {
    if (this.copy.connected) {
      // What was sent before the connection broke may have arrived anyway. Nobody can know.
      const answered =
        tries > 0 && effect.do === 'append' ? () => this.program.next({ outcome: 'unclear' }) : this.carryOut(effect);
      if (!this.killed) this.goOn(answered());
      return;
    }
    if (tries === 0 && effect.do === 'append' && this.copy.world.chance.flip(0.5)) this.ports.perform(effect);
    this.after(CONNECTING_MS, () => this.arrive(effect, tries + 1));
  }

  private delayMs(effect: ServiceEffect<I>): number {
    const { early, world } = this.copy;
    if (!this.isInTerm) return early.next() * world.conditions.takeOverMs;
    if (effect.do === 'now') return 0;
    return effect.do === 'back-off' ? 20 + world.chance.next() * 50 : world.delayMs();
  }
}
