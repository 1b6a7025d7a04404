import type { Fault } from './fault.js';

/** An append happens and its answer is lost, or it does not happen and nobody says so; reads lag behind. */
export const lostAnswers: Fault = {
  name: 'lost-answers',
  about: 'appends happen or not, and nobody says so; reads lag behind',
  arrange({ world: { weather }, chance }) {
    weather.answerLost = chance.pick([0.02, 0.05, 0.2]);
    weather.appendLost = chance.pick([0.02, 0.05, 0.2]);
    weather.lag = chance.whole(0, 6);
  },
};
