import type { Core, LeadershipStatus, Need } from '#libs/engine';
import type { SimBus } from './bus.js';
import { Chance } from './chance.js';
import type { Surroundings } from './surroundings.js';

/** How one kind of service runs in the simulation. */
export interface ServiceKind<S, I extends object, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  /** The stream of its inputs. */
  readonly stream?: 'changes' | 'reports';
  /** The inputs stored after a position in it. */
  readonly read?: (bus: SimBus, after: number, state: S) => readonly I[];
  /** What its shell does in addition, for each copy. */
  readonly companion?: ((copy: ServiceHost<S, I, N, G>) => Companion) | undefined;
}

/** What a copy of a service does besides its cycle, as its shell does in production. */
export interface Companion {
  /** After whatever this copy folded or decided while it leads; `ended` when it leads no more. */
  follow(): void;
  ended(): void;
}

/** Where the processes of one copy run: its machine's clocks, and its connection. */
export abstract class ServiceHost<S, I extends object, N extends Need, G> {
  connected = true;
  leadingSinceMs: number | undefined;
  /** By how much the wall clock of its machine is wrong. */
  wallSkewMs = 0;
  readonly name: string;
  readonly reads: ReadonlySet<string>;
  /** For what takes time before it leads: what is added there leaves all turns as they were. */
  readonly early: Chance;
  abstract readonly companion: Companion | undefined;

  constructor(
    readonly world: Surroundings,
    readonly kind: ServiceKind<S, I, N, G>,
    readonly index: number,
    private readonly skewMs: number,
  ) {
    this.name = `${kind.core.name}${index}`;
    this.reads = new Set(kind.core.reads);
    this.early = new Chance(world.seed, `before ${this.name} leads`);
  }

  /** Monotonic milliseconds of its processes. */
  get monotonicMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  abstract get leading(): boolean;
  /** Whether this was the last step of its life. */
  abstract dies(): boolean;
  /** Takes what came in its stream since it looked last. */
  abstract feed(): void;
  /** Something may be new: takes a turn as soon as it can. */
  abstract wake(): void;
  /** Its leadership has changed. */
  abstract changed(status: LeadershipStatus, before: LeadershipStatus): void;
}
