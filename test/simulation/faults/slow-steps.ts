import type { Fault } from './fault.js';

/** Every step takes long, so that everything happens in the middle of everything else. */
export const slowSteps: Fault = {
  name: 'slow-steps',
  arrange(world) {
    world.weather.delayMs = 2_000;
  },
};
