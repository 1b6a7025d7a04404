import type { Fault } from './fault.js';

/** Of facts that need not stand together only the first few are appended: somebody else's came between, or the server went away. */
export const partedAppends: Fault = {
  name: 'parted-appends',
  about: 'of facts that may stand alone only the first are appended',
  arrange({ world, chance }) {
    world.weather.appendParted = chance.pick([0.05, 0.2, 0.5]);
  },
};
