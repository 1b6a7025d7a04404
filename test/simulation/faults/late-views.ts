import type { Fault } from './fault.js';
import { latePushes } from './late-pushes.js';

/** Views are written late and one after the other; then what is pushed of them is late, too. */
export const lateViews: Fault = {
  name: 'late-views',
  about: 'views are written late and piecemeal, and pushed late',
  arrange(stage) {
    stage.world.weather.viewLateMs = stage.chance.pick([100, 3_000, 20_000]);
    latePushes.arrange(stage);
  },
};
