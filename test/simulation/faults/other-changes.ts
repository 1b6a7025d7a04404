import * as deeds from '../people/deeds.js';
import type { Fault } from './fault.js';

/** A second source also publishes. */
export const otherSources: Fault = {
  name: 'other-sources',
  about: 'another source publishes the same fragments as people, and uses ids more than once',
  arrange: (stage) => stage.nowAndThen(60_000, (chance) => deeds.publishAsOther(stage.world, chance)),
};

/** Some changes can be rolled back, others cannot. */
export const rollbacks: Fault = {
  name: 'rollbacks',
  about: 'people roll back changes',
  arrange: (stage) => stage.nowAndThen(60_000, (chance) => deeds.rollBack(stage.world, chance)),
};

/** Some changes must be slower than the pools allow. */
export const pacedChanges: Fault = {
  name: 'paced-changes',
  about: 'people publish changes that limit how many of their nodes change at once',
  arrange: (stage) => stage.nowAndThen(60_000, (chance) => deeds.publishPaced(stage.world, chance)),
};

/** Some changes must wait for others, which may come late or never. */
export const missingReferences: Fault = {
  name: 'missing-references',
  about: 'people publish changes that refer to what does not exist yet',
  arrange: (stage) => stage.nowAndThen(30_000, (chance) => deeds.publishReferring(stage.world, chance)),
};

/** Values change at any time, and before or after what uses them. */
export const boundValues: Fault = {
  name: 'bound-values',
  about: 'people publish objects with values of their nodes, which change',
  arrange: (stage) => {
    stage.nowAndThen(40_000, (chance) => deeds.publishBound(stage.world, chance));
    stage.nowAndThen(20_000, (chance) => deeds.publishValues(stage.world, chance));
  },
};

/** Addresses change at any time, and before or after what uses them. */
export const hostNames: Fault = {
  name: 'host-names',
  about: 'people publish services by their host names, whose addresses change',
  arrange: (stage) => {
    stage.nowAndThen(40_000, (chance) => deeds.publishService(stage.world, chance));
    stage.nowAndThen(40_000, (chance) => deeds.publishAddresses(stage.world, chance));
  },
};
