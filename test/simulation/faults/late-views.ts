import type { Fault } from './fault.js';

/** Views are written late and one after the other; what is pushed of them is late, too. */
export const lateViews: Fault = {
  name: 'late-views',
  about: 'views are written late and piecemeal, and pushed late',
  arrange({ world: { weather }, chance }) {
    weather.viewLateMs = chance.pick([100, 3_000, 20_000]);
    weather.pushLateMs = chance.pick([100, 5_000, 40_000]);
  },
};
