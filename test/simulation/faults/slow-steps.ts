import type { Fault } from './fault.js';

/** Every step takes long, so that everything happens in the middle of everything else. */
export const slowSteps: Fault = {
  name: 'slow-steps',
  about: 'every step takes up to seconds',
  arrange({ world, chance, name }) {
    world.weather.delayMs = chance.pick([300, 2_000]);
    world.fire(name);
  },
};
