import type { Conditions } from '../world/surroundings.js';
import type { Fault, Stage } from './fault.js';

/** Makes conditions of the world worse for the whole run. */
const condition = (name: string, about: string, arrange: (conditions: Conditions, stage: Stage) => void): Fault => ({
  name,
  about,
  arrange: (stage) => arrange(stage.world.conditions, stage),
});

export const doubledReports = condition(
  'doubled-reports',
  'reports come twice, up to a minute apart',
  (to, { chance }) => {
    to.reportDoubled = Math.max(to.reportDoubled, chance.pick([0.05, 0.15, 0.4]));
  },
);
export const laggingReads = condition(
  'lagging-reads',
  'reads of the ledger lag some facts behind',
  (to, { chance }) => {
    to.lag = Math.max(to.lag, chance.whole(1, 6));
  },
);
export const latePushes = condition(
  'late-pushes',
  'what is pushed of views is old, and comes in any order',
  (to, { chance }) => {
    to.pushLateMs = Math.max(to.pushLateMs, chance.pick([100, 5_000, 40_000]));
  },
);
export const lateReports = condition('late-reports', 'reports come late, and out of order', (to, { chance }) => {
  to.reportLate = Math.max(to.reportLate, chance.pick([0.15, 0.4]));
});
export const lateViews = condition(
  'late-views',
  'views are written late and piecemeal, and pushed late',
  (to, { chance }) => {
    to.viewLateMs = chance.pick([100, 3_000, 20_000]);
    to.pushLateMs = chance.pick([100, 5_000, 40_000]);
  },
);
export const lostAnswers = condition(
  'lost-answers',
  'appends happen or not, and nobody says so; reads lag behind',
  (to, { chance }) => {
    to.answerLost = chance.pick([0.02, 0.05, 0.2]);
    to.appendLost = chance.pick([0.02, 0.05, 0.2]);
    to.lag = chance.whole(0, 6);
  },
);
export const lostPushes = condition('lost-pushes', 'what is pushed of views is lost', (to, { chance }) => {
  to.pushLost = Math.max(to.pushLost, chance.pick([0.1, 0.3, 1]));
});
export const lostReports = condition(
  'lost-reports',
  'reports are lost, or their acknowledgement is',
  (to, { chance }) => {
    to.reportLost = Math.max(to.reportLost, chance.pick([0.15, 0.4]));
  },
);
/** Somebody else's facts came between, or the server went away. */
export const partedAppends = condition(
  'parted-appends',
  'of facts that may stand alone only the first are appended',
  (to, { chance }) => {
    to.appendParted = chance.pick([0.05, 0.2, 0.5]);
  },
);
/** So that everything happens in the middle of everything else. */
export const slowSteps = condition('slow-steps', 'every step takes up to seconds', (to, { chance, world, name }) => {
  to.delayMs = chance.pick([300, 2_000]);
  world.fire(name);
});

/** All that can become of a message, at once. */
export const badPost: Fault = {
  name: 'bad-post',
  about: 'reports are lost, doubled, late and out of order; pushes are lost',
  parts: [lostReports, doubledReports, lateReports, lostPushes],
  arrange({ world: { conditions }, chance }) {
    conditions.reportLost = chance.pick([0, 0.15, 0.4]);
    conditions.reportDoubled = chance.pick([0.05, 0.15, 0.4]);
    conditions.reportLate = chance.pick([0, 0.15, 0.4]);
    conditions.pushLost = chance.pick([0.1, 0.3, 1]);
  },
};
