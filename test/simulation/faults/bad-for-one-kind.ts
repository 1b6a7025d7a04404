import { publish } from '../people/deeds.js';
import { badForOneKindChange } from '../people/manifests.js';
import type { Fault } from './fault.js';

export const badForOneKind: Fault = {
  name: 'bad-for-one-kind',
  about: 'people publish configs that are bad on one kind of node only',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const published = new Map<string, ReturnType<typeof badForOneKindChange>['isBadFor']>();
    world.listeners.push((fact) => {
      if (fact.type !== 'node.lease.settled' || fact.kind !== 'forward' || fact.because !== 'invalid') return;
      if (published.get(fact.change)?.(world.nodes.get(fact.node)?.labels ?? {}) === true) stage.tookEffect();
    });
    stage.nowAndThen(120_000, (chance) => {
      const { body, isBadFor } = badForOneKindChange(world, chance);
      published.set(publish(world, body), isBadFor);
    });
  },
};
