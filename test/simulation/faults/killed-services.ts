import { nowAndThen, type Fault } from './fault.js';

/** Copies of services are killed between any two of their steps, and start again from nothing or from a snapshot. */
export const killedServices: Fault = {
  name: 'killed-services',
  arrange(world, endMs) {
    nowAndThen(world, endMs, 45_000, () => {
      const copy = world.chance.pick(world.copies);
      if (!copy.alive) return;
      const snapshot = world.chance.happens(0.5) ? copy.snapshot() : undefined;
      world.clock.after(world.chance.next() * 10, () => {
        copy.kill();
        world.clock.after(world.chance.next() * 20_000, () => copy.start(snapshot));
      });
    });
  },
};
