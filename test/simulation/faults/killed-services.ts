import type { Fault } from './fault.js';

/** Copies of services are killed between any two of their steps, and start again from nothing or from a snapshot. */
export const killedServices: Fault = {
  name: 'killed-services',
  about: 'copies of services die between any two steps, and start again from nothing or from a snapshot',
  arrange(stage) {
    stage.nowAndThen(40_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const snapshot = chance.happens(0.5) ? copy.snapshot() : undefined;
      const againMs = chance.next() * chance.pick([1_000, 20_000, 120_000]);
      copy.dieAfter(chance.whole(0, 12), () =>
        stage.world.clock.after(againMs, () => {
          if (!copy.alive) copy.start(snapshot);
        }),
      );
    });
  },
};
