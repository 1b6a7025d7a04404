import type { Fault } from './fault.js';

/** Probes of a machine say now this, now that. */
export const flappingProbes: Fault = {
  name: 'flapping-probes',
  about: 'probes of a machine say now this, now that',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(60_000, (chance) => {
      const node = stage.anyNode(chance);
      node.trouble = { ...node.trouble, flapping: chance.pick([0.2, 0.5]) };
      stage.world.clock.after(chance.next() * chance.pick([60_000, 300_000]), () => {
        node.trouble = { ...node.trouble, flapping: 0 };
      });
    });
  },
};
