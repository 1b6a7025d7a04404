import { doubledReports } from './doubled-reports.js';
import type { Fault } from './fault.js';
import { lateReports } from './late-reports.js';
import { lostPushes } from './lost-pushes.js';
import { lostReports } from './lost-reports.js';

/** All that can become of a message, at once. */
export const badPost: Fault = {
  name: 'bad-post',
  about: 'reports are lost, doubled, late and out of order; pushes are lost',
  parts: [lostReports, doubledReports, lateReports, lostPushes],
  arrange({ world: { weather }, chance }) {
    weather.reportLost = chance.pick([0, 0.15, 0.4]);
    weather.reportDoubled = chance.pick([0.05, 0.15, 0.4]);
    weather.reportLate = chance.pick([0, 0.15, 0.4]);
    weather.pushLost = chance.pick([0.1, 0.3, 1]);
  },
};
