import type { Fault } from './fault.js';

/** Two or three copies of a service lead at once, some for long: the leader lease is no lock. */
export const staleLeaders: Fault = {
  name: 'stale-leaders',
  about: 'two or three copies of a service lead at once, some for long',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(25_000, (chance) => {
      const copy = stage.anyCopy(chance);
      const forMs = chance.next() * chance.pick([2_000, 60_000, 600_000]);
      const before = stage.world.leader(copy.kind.core.name);
      copy.lead();
      if (before !== undefined && before !== copy && copy.leading) stage.bite();
      stage.world.clock.after(forMs, () => copy.follow());
    });
  },
};
