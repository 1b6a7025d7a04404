import type { Fault } from './fault.js';

/** Reports do not arrive, or arrive and their acknowledgement does not. */
export const lostReports: Fault = {
  name: 'lost-reports',
  about: 'reports are lost, or their acknowledgement is',
  arrange({ world: { weather }, chance }) {
    weather.reportLost = Math.max(weather.reportLost, chance.pick([0.15, 0.4]));
  },
};
