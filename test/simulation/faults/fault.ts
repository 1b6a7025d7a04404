import { Chance } from '../world/chance.js';
import type { SimNode } from '../world/sim-node.js';
import type { ServiceCopy } from '../world/service-copy.js';
import type { World } from '../world/world.js';

/**
 * One way in which the world misbehaves, or one thing that people do: arranged at the start of a run, over at the
 * stage's end.
 */
export interface Fault {
  readonly name: string;
  /** One line for `--help`. */
  readonly about: string;
  arrange(stage: Stage): void;
  /**
   * What it arranges may come to nothing: where it takes effect, that is counted (`World.fire`). Else whatever occurs
   * is counted.
   */
  readonly countsBites?: true;
  /** It is these at once: they count, it does not. */
  readonly parts?: readonly Fault[];
}

/** Where one fault acts. What it does is numbered, so that a run can be repeated with some of it left out. */
export class Stage {
  /** For when something happens; what happens then has its own chance, and is the same whatever else is left out. */
  readonly chance: Chance;
  readonly name: string;
  private count = 0;

  constructor(
    readonly world: World,
    private readonly actor: Fault,
    readonly endMs: number,
    private readonly only: ReadonlySet<number> | undefined,
  ) {
    this.name = actor.name;
    this.chance = new Chance(world.seed, this.name);
  }

  /** Lets one occurrence happen, if it is not left out. */
  occur(happen: (chance: Chance) => void): void {
    const number = this.count++;
    if (this.only !== undefined && !this.only.has(number)) return;
    this.world.occurred(this.name, number);
    if (this.actor.countsBites !== true) this.bite();
    happen(new Chance(this.world.seed, `${this.name}:${number}`));
  }

  /** It took effect. */
  bite(): void {
    this.world.fire(this.name);
  }

  /** Lets something happen now and then, until the time is over. */
  nowAndThen(everyMs: number, happen: (chance: Chance) => void): void {
    const { clock } = this.world;
    const next = (): void => {
      clock.after(this.chance.next() * 2 * everyMs, () => {
        if (clock.nowMs >= this.endMs) return;
        this.occur(happen);
        next();
      });
    };
    next();
  }

  anyNode(chance: Chance): SimNode {
    return chance.pick([...this.world.nodes.values()]);
  }

  anyCopy(chance: Chance): ServiceCopy {
    return chance.pick(this.world.copies);
  }
}
