import type { Fault } from './fault.js';

/** Appliers are killed between any two steps, also in the middle of writing the journal, and started again; some machines reboot. */
export const killedNodes: Fault = {
  name: 'killed-nodes',
  about: 'appliers die between any two steps, and start again; some machines reboot',
  arrange(stage) {
    stage.nowAndThen(35_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const reboots = chance.happens(0.25);
      const againMs = chance.next() * chance.pick([1_000, 30_000, 400_000]);
      node.dieAfter(chance.whole(0, 25), 'killed', () => {
        if (reboots) node.reboot();
        stage.world.clock.after(againMs, () => node.start());
      });
    });
  },
};
