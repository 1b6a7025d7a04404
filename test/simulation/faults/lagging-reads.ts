import type { Fault } from './fault.js';

/** Whoever reads the ledger is some facts behind. */
export const laggingReads: Fault = {
  name: 'lagging-reads',
  about: 'reads of the ledger lag some facts behind',
  arrange({ world: { weather }, chance }) {
    weather.lag = Math.max(weather.lag, chance.whole(1, 6));
  },
};
