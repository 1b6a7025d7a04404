import { publish } from '../people/deeds.js';
import { poolThatIgnoresSilence } from '../people/manifests.js';
import type { Fault } from './fault.js';

/** Long enough that the node is silent, that some pools ignore it, or that all pools ignore it. */
const AWAY_MS = [120_000, 200_000, 400_000];

export const impatientPools: Fault = {
  name: 'impatient-pools',
  about: 'pools ignore nodes that are silent for some minutes, and nodes lose their connection for longer',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    stage.nowAndThen(120_000, (chance) => {
      publish(world, poolThatIgnoresSilence(chance, world.cluster !== undefined));
      const victim = stage.anyNode(chance);
      victim.disconnect();
      world.clock.after(chance.pick(AWAY_MS), () => victim.reconnect());
    });
    world.listeners.push((fact) => {
      if (fact.type === 'node.skipped' && fact.by === 'scheduler') stage.tookEffect();
    });
  },
};
