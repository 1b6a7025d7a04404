import type { Core, LeadershipStatus, Need } from '#libs/engine';
import type { SimBus } from './bus.js';
import { Chance } from './chance.js';
import type { Surroundings } from './surroundings.js';

/** How one kind of service runs in the simulation. */
export interface ServiceKind<S, I extends object, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  /** The stream of its inputs. */
  readonly stream?: 'changes' | 'reports';
  /** The inputs after a position in the stream. */
  readonly read?: (bus: SimBus, after: number, state: S) => readonly I[];
  /** What its shell does in addition, for each copy. */
  readonly companion?: ((copy: ServiceHost<S, I, N, G>) => Companion) | undefined;
}

/** What a copy of a service does in addition to its cycle, like its shell in production. */
export interface Companion {
  /** Called after each fold or decision while this copy leads. Called with `ended` when it stops leading. */
  follow(): void;
  ended(): void;
}

/** The environment of the processes of one copy: the clocks of its machine, and its connection. */
export abstract class ServiceHost<S, I extends object, N extends Need, G> {
  connected = true;
  leadingSinceMs: number | undefined;
  /** The error of the wall clock of its machine. */
  wallSkewMs = 0;
  readonly name: string;
  readonly reads: ReadonlySet<string>;
  /** For steps before it leads. Additions there leave all turns unchanged. */
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

  /** The monotonic clock of its processes, in ms. */
  get monotonicMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  /** The wall clock of its machine, in ms since 1970. */
  get wallMs(): number {
    return this.world.clock.nowMs + this.wallSkewMs;
  }

  abstract get leading(): boolean;
  /** Whether this was the last step of its life. */
  abstract dies(): boolean;
  /** Reads what has arrived in its stream since the last call. */
  abstract feed(): void;
  /** Something may be new: takes a turn as soon as it can. */
  abstract wake(): void;
  /** Called when its leadership has changed. */
  abstract changed(status: LeadershipStatus, before: LeadershipStatus): void;
}
