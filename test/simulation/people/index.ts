import type { Fault } from '../faults/fault.js';
import * as deeds from './deeds.js';

export { resumeAll, publish } from './deeds.js';
export { beginning } from './manifests.js';

const [pause, resume, abort] = [deeds.steer('pause'), deeds.steer('resume'), deeds.steer('abort')];
const { clear, skip, removeAny, askWhy } = deeds;
const STEERING = [pause, resume, resume, abort, pause, resume, clear, skip, skip, removeAny, askWhy];

/** What people do on any day. These actors have names and can be left out, like faults. */
export const PEOPLE: readonly Fault[] = [
  {
    name: 'changes',
    about: 'people publish changes, good and bad',
    arrange: (stage) => stage.nowAndThen(50_000, (chance) => deeds.publishChange(stage.world, chance)),
  },
  {
    name: 'steering',
    about: 'people pause, resume, abort, clear, skip, remove and ask why',
    arrange: (stage) => stage.nowAndThen(80_000, (chance) => chance.pick(STEERING)(stage.world, chance)),
  },
  {
    name: 'relabels',
    about: 'nodes get other labels',
    arrange: (stage) => stage.nowAndThen(180_000, (chance) => deeds.relabel(stage.world, chance)),
  },
];
