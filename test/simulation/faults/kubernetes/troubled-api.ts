import type { Fault } from '../fault.js';

export const troubledApi: Fault = {
  name: 'troubled-api',
  about: 'the API server is away, slow or busy; what it did is not heard, and watches break, lag or miss something',
  arrange(stage) {
    const { world } = stage;
    const { cluster } = world;
    if (cluster === undefined) return;
    const { chance } = stage;
    Object.assign(cluster.conditions, {
      answerLost: chance.pick([0, 0.05, 0.2]),
      lost: chance.pick([0, 0.05, 0.2]),
      throttled: chance.pick([0, 0.1, 0.4]),
      delayMs: chance.pick([20, 500, 5_000]),
      watchLateMs: chance.pick([50, 2_000, 20_000]),
      watchLost: chance.pick([0, 0.3]),
    });
    stage.nowAndThen(90_000, (one) => {
      cluster.away = true;
      world.clock.after(one.next() * one.pick([1_000, 30_000, 200_000]), () => {
        cluster.away = false;
        cluster.notifyWatchers(undefined);
      });
    });
  },
};
