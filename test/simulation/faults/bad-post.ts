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
  arrange(stage) {
    for (const part of [lostReports, doubledReports, lateReports, lostPushes]) part.arrange(stage);
  },
};
