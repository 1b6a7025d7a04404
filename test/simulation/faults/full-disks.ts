import type { Fault } from './fault.js';

/** Nothing can be written on a machine for a while: neither its files nor its journal. */
export const fullDisks: Fault = {
  name: 'full-disks',
  about: 'nothing can be written on a machine for a while, journal included',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(60_000, (chance) => {
      const node = stage.anyNode(chance);
      node.trouble = { ...node.trouble, full: true };
      stage.world.clock.after(chance.next() * chance.pick([5_000, 90_000, 300_000]), () => {
        node.trouble = { ...node.trouble, full: false };
      });
    });
  },
};
