import type { Conditions } from '../world/surroundings.js';
import type { Fault, Stage } from './fault.js';

/** Makes conditions of the world worse for the whole run: each is at least one of these values. */
const worse = (
  name: string,
  about: string,
  values: { readonly [K in keyof Conditions]?: readonly number[] },
): Fault => ({
  name,
  about,
  arrange({ world: { conditions }, chance }: Stage) {
    for (const [what, some] of Object.entries(values) as [keyof Conditions, readonly number[]][])
      conditions[what] = Math.max(conditions[what], chance.pick(some));
  },
});

export const doubledReports = worse('doubled-reports', 'reports come twice, up to a minute apart', {
  reportDoubled: [0.05, 0.15, 0.4],
});
export const laggingReads = worse('lagging-reads', 'reads of the ledger lag some facts behind', {
  lag: [1, 2, 3, 4, 5, 6],
});
export const latePushes = worse('late-pushes', 'what is pushed of views is old, and comes in any order', {
  pushLateMs: [100, 5_000, 40_000],
});
export const lateReports = worse('late-reports', 'reports come late, and out of order', { reportLate: [0.15, 0.4] });
export const lateViews = worse('late-views', 'views are written late and piecemeal, and pushed late', {
  viewLateMs: [100, 3_000, 20_000],
  pushLateMs: [100, 5_000, 40_000],
});
export const lostAnswers = worse('lost-answers', 'appends happen or not, and nobody says so; reads lag behind', {
  answerLost: [0.02, 0.05, 0.2],
  appendLost: [0.02, 0.05, 0.2],
  lag: [0, 1, 2, 3, 4, 5, 6],
});
export const lostHeartbeats = worse('lost-heartbeats', 'most heartbeats are lost', {
  heartbeatLost: [0.5, 0.8, 0.95],
});
export const lostPushes = worse('lost-pushes', 'what is pushed of views is lost', { pushLost: [0.1, 0.3, 1] });
export const lostReports = worse('lost-reports', 'reports are lost, or their acknowledgement is', {
  reportLost: [0.15, 0.4],
});
/** The facts of other services arrived in between, or the server went away. */
export const partedAppends = worse('parted-appends', 'of facts that may stand alone only the first are appended', {
  appendParted: [0.05, 0.2, 0.5],
});

const delays = worse('slow-steps', 'every step takes up to seconds', { delayMs: [300, 2_000] });
/** Slow steps, so that everything overlaps with everything else. */
export const slowSteps: Fault = {
  ...delays,
  arrange(stage) {
    delays.arrange(stage);
    stage.tookEffect();
  },
};

/** Everything that can go wrong with a message, at once. */
export const badPost: Fault = {
  ...worse('bad-post', 'reports are lost, doubled, late and out of order; pushes are lost', {
    reportLost: [0, 0.15, 0.4],
    reportDoubled: [0.05, 0.15, 0.4],
    reportLate: [0, 0.15, 0.4],
    pushLost: [0.1, 0.3, 1],
  }),
  parts: [lostReports, doubledReports, lateReports, lostPushes],
};
