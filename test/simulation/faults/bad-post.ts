import type { Fault } from './fault.js';

/** Reports are lost, doubled, late and out of order; pushes are lost. */
export const badPost: Fault = {
  name: 'bad-post',
  arrange(world) {
    world.weather.reportLost = 0.15;
    world.weather.reportDoubled = 0.15;
    world.weather.reportLate = 0.15;
    world.weather.pushLost = 0.3;
  },
};
