import type { Fault } from '../faults/fault.js';
import * as deeds from './deeds.js';

export { letGo, publish } from './deeds.js';
export { beginning } from './manifests.js';

/** What people do on any day. They have names and can be left out as faults can. */
export const PEOPLE: readonly Fault[] = [
  {
    name: 'changes',
    about: 'people publish changes, good and bad',
    arrange: (stage) => stage.nowAndThen(50_000, (chance) => deeds.publishChange(stage.world, chance)),
  },
  {
    name: 'steering',
    about: 'people pause, resume, abort, forgive, skip, remove and ask why',
    arrange: (stage) =>
      stage.nowAndThen(80_000, (chance) => {
        const { pause, resume, abort } = {
          pause: deeds.steer('pause'),
          resume: deeds.steer('resume'),
          abort: deeds.steer('abort'),
        };
        chance.pick([
          pause,
          resume,
          resume,
          abort,
          pause,
          resume,
          deeds.forgive,
          deeds.skip,
          deeds.skip,
          deeds.removeAny,
          deeds.askWhy,
        ])(stage.world, chance);
      }),
  },
  {
    name: 'relabels',
    about: 'nodes get other labels',
    arrange: (stage) => stage.nowAndThen(180_000, (chance) => deeds.relabel(stage.world, chance)),
  },
];
