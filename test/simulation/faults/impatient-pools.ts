import { publish } from '../people/deeds.js';
import { poolThatIgnoresSilence } from '../people/manifests.js';
import type { Fault } from './fault.js';

/** So long that the node is silent, that some pools ignore it, that all of them do. */
const AWAY_MS = [120_000, 200_000, 400_000];

export const impatientPools: Fault = {
  name: 'impatient-pools',
  about: 'pools ignore nodes that are silent for some minutes, and nodes lose their connection for longer',
  countsBites: true,
  arrange(stage) {
    const { world } = stage;
    stage.nowAndThen(120_000, (chance) => {
      publish(world, poolThatIgnoresSilence(chance, world.cluster !== undefined));
      const lost = stage.anyNode(chance);
      lost.disconnect();
      world.clock.after(chance.pick(AWAY_MS), () => lost.reconnect());
    });
    world.listeners.push((fact) => {
      if (fact.type === 'node.skipped' && fact.by === 'scheduler') stage.bite();
    });
  },
};
