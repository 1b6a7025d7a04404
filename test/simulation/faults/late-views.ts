import type { Fault } from './fault.js';

/** Views are written late and one after the other, and what was pushed of them is old when it comes, and in any order. */
export const lateViews: Fault = {
  name: 'late-views',
  about: 'views are written late and piecemeal; what is pushed of them is old, and comes in any order',
  arrange({ world, chance }) {
    world.weather.viewLateMs = chance.pick([100, 3_000, 20_000]);
    world.weather.pushLateMs = chance.pick([100, 5_000, 40_000]);
  },
};
