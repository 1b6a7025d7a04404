import { nowAndThen, type Fault } from './fault.js';

/** Appliers are killed between any two steps, and started again; some machines reboot, some come back with an empty disk. */
export const killedNodes: Fault = {
  name: 'killed-nodes',
  arrange(world, endMs) {
    nowAndThen(world, endMs, 40_000, () => {
      const node = world.chance.pick([...world.nodes.values()]);
      if (!node.alive) return;
      const how = world.chance.next();
      if (how < 0.2) node.reboot();
      else if (how < 0.3) node.lose();
      else node.kill();
      world.clock.after(world.chance.next() * world.chance.pick([1_000, 30_000, 400_000]), () => {
        if (!node.alive) node.start();
      });
    });
  },
};
