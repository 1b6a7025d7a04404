import type { Fault } from './fault.js';

/** Whoever reads the ledger is some facts behind. */
export const laggingReads: Fault = {
  name: 'lagging-reads',
  about: 'reads of the ledger lag some facts behind',
  arrange({ world, chance }) {
    world.weather.lag = chance.whole(0, 6);
  },
};
