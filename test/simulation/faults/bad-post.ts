import type { Fault } from './fault.js';

/** Reports are lost, doubled, late and out of order; pushes are lost. */
export const badPost: Fault = {
  name: 'bad-post',
  about: 'reports are lost, doubled, late and out of order; pushes are lost',
  arrange({ world, chance }) {
    world.weather.reportLost = chance.pick([0, 0.15, 0.4]);
    world.weather.reportDoubled = chance.pick([0.05, 0.15, 0.4]);
    world.weather.reportLate = chance.pick([0, 0.15, 0.4]);
    world.weather.pushLost = chance.pick([0.1, 0.3, 1]);
  },
};
