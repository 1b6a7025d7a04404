import type { Fault } from './fault.js';

/** Somebody has made a file unwritable on a machine, for a while; the way back cannot write it either. */
export const readOnlyFiles: Fault = {
  name: 'read-only-files',
  about: 'a file of a machine cannot be written for a while, on the way back neither',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(60_000, (chance) => {
      const node = stage.anyNode(chance);
      node.trouble = { ...node.trouble, readOnly: [chance.pick(['/etc/app', '/etc/b'])] };
      stage.world.clock.after(chance.next() * chance.pick([30_000, 300_000]), () => {
        node.trouble = { ...node.trouble, readOnly: [] };
      });
    });
  },
};
