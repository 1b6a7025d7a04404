import { Chance } from '../world/chance.js';
import type { SimNode } from '../world/sim-node.js';
import type { ServiceCopy } from '../world/service-copy.js';
import type { World } from '../world/world.js';

/**
 * One way in which the world misbehaves, or one thing that people do. It is arranged at the start of a run, and over at
 * the end of the stage.
 */
export interface Fault {
  readonly name: string;
  /** One line for `--help`. */
  readonly about: string;
  arrange(stage: Stage): void;
  /**
   * What it arranges may have no effect. If set, only real effects are counted (`World.fire`), and otherwise every
   * occurrence.
   */
  readonly countsEffects?: true;
  /** It consists of these faults, which are counted instead of it. */
  readonly parts?: readonly Fault[];
}

/** The place where one fault acts. Its occurrences are numbered, so that a run can be repeated without some of them. */
export class Stage {
  /**
   * Decides when something happens. What happens has its own random numbers, so it stays the same when something else
   * is left out.
   */
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

  /** Lets one occurrence happen unless it is left out. */
  occur(act: (chance: Chance) => void): void {
    const number = this.count++;
    if (this.only !== undefined && !this.only.has(number)) return;
    this.world.occurred(this.name, number);
    if (this.actor.countsEffects !== true) this.tookEffect();
    act(new Chance(this.world.seed, `${this.name}:${number}`));
  }

  /** Records that it took effect. */
  tookEffect(): void {
    this.world.fire(this.name);
  }

  /** Lets something happen at random intervals until the time is over. */
  nowAndThen(everyMs: number, act: (chance: Chance) => void): void {
    const { clock } = this.world;
    const next = (): void => {
      clock.after(this.chance.next() * 2 * everyMs, () => {
        if (clock.nowMs >= this.endMs) return;
        this.occur(act);
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
