import { publish } from '../people/deeds.js';
import { poolThatIgnoresSilence } from '../people/manifests.js';
import type { Fault } from './fault.js';

export const impatientPools: Fault = {
  name: 'impatient-pools',
  about: 'pools ignore nodes that are silent for some minutes',
  countsBites: true,
  arrange(stage) {
    const { world } = stage;
    stage.nowAndThen(
      120_000,
      (chance) => void publish(world, poolThatIgnoresSilence(chance, world.cluster !== undefined)),
    );
    world.listeners.push((fact) => {
      if (fact.type === 'node.skipped' && fact.by === 'scheduler') stage.bite();
    });
  },
};
