import type { Fault } from './fault.js';

/** Reports are on their way for up to a minute and a half, so that later ones overtake them. */
export const lateReports: Fault = {
  name: 'late-reports',
  about: 'reports come late, and out of order',
  arrange({ world: { weather }, chance }) {
    weather.reportLate = Math.max(weather.reportLate, chance.pick([0.15, 0.4]));
  },
};
