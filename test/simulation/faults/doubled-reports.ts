import type { Fault } from './fault.js';

/** Reports come a second time, up to a minute later. */
export const doubledReports: Fault = {
  name: 'doubled-reports',
  about: 'reports come twice, up to a minute apart',
  arrange({ world: { weather }, chance }) {
    weather.reportDoubled = Math.max(weather.reportDoubled, chance.pick([0.05, 0.15, 0.4]));
  },
};
