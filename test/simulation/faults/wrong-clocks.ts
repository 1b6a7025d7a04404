import type { Fault } from './fault.js';

const MOST_WRONG_MS = 10 * 60_000;

/** Wall clocks of nodes and services are wrong by minutes, and jump: what they say is for people only. */
export const wrongClocks: Fault = {
  name: 'wrong-clocks',
  about: 'wall clocks are wrong by up to ten minutes, and jump',
  arrange(stage) {
    stage.nowAndThen(20_000, (chance) => {
      const one = chance.happens(0.5) ? stage.anyNode(chance) : stage.anyCopy(chance);
      one.wallSkewMs = chance.whole(-MOST_WRONG_MS, MOST_WRONG_MS);
    });
  },
};
