import type { World } from '../world.js';

/** One way in which the world misbehaves: arranged at the start of a run, over by `endMs`. */
export interface Fault {
  readonly name: string;
  arrange(world: World, endMs: number): void;
}

/** Lets something happen now and then, until the time is over. */
export function nowAndThen(world: World, endMs: number, everyMs: number, happen: () => void): void {
  const next = (): void => {
    world.clock.after(world.chance.next() * 2 * everyMs, () => {
      if (world.clock.nowMs >= endMs) return;
      happen();
      next();
    });
  };
  next();
}
