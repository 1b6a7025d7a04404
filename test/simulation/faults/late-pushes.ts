import type { Fault } from './fault.js';

/** What is pushed of views is old when it comes, and comes in any order. */
export const latePushes: Fault = {
  name: 'late-pushes',
  about: 'what is pushed of views is old, and comes in any order',
  arrange({ world: { weather }, chance }) {
    weather.pushLateMs = Math.max(weather.pushLateMs, chance.pick([100, 5_000, 40_000]));
  },
};
