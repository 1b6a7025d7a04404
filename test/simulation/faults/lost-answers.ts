import type { Fault } from './fault.js';

/** An append happens and its answer is lost, or it does not happen and nobody says so; reads lag behind. */
export const lostAnswers: Fault = {
  name: 'lost-answers',
  arrange(world) {
    world.weather.answerLost = 0.05;
    world.weather.appendLost = 0.05;
    world.weather.lag = 4;
  },
};
