import type { Fault } from './fault.js';

/** What is pushed of a view does not reach its node, which has to read. */
export const lostPushes: Fault = {
  name: 'lost-pushes',
  about: 'what is pushed of views is lost',
  arrange({ world: { weather }, chance }) {
    weather.pushLost = Math.max(weather.pushLost, chance.pick([0.1, 0.3, 1]));
  },
};
