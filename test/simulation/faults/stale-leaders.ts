import { nowAndThen, type Fault } from './fault.js';

/** Several copies of a service lead at once: the leader lease is no lock. */
export const staleLeaders: Fault = {
  name: 'stale-leaders',
  arrange(world, endMs) {
    nowAndThen(world, endMs, 30_000, () => {
      const copy = world.chance.pick(world.copies);
      copy.lead();
      world.clock.after(world.chance.next() * 60_000, () => copy.follow());
    });
  },
};
