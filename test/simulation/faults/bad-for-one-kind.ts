import { publish } from '../people/deeds.js';
import { badForOneKindChange } from '../people/manifests.js';
import type { Fault } from './fault.js';

/** Changes that most nodes take, and one kind of node does not. */
export const badForOneKind: Fault = {
  name: 'bad-for-one-kind',
  about: 'people publish configs that are bad on one kind of node only',
  countsBites: true,
  arrange(stage) {
    const { world } = stage;
    const published = new Set<string>();
    world.listeners.push((fact) => {
      if (fact.type === 'node.lease.settled' && fact.because === 'invalid' && published.has(fact.change)) stage.bite();
    });
    stage.nowAndThen(120_000, (chance) => published.add(publish(world, badForOneKindChange(world, chance))));
  },
};
