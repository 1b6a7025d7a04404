import type { Chance } from '../chance.js';
import type { SimNode } from '../sim-node.js';
import type { World } from '../world.js';
import type { Fault } from './fault.js';

/** Machines come back with an empty disk. */
export const lostDisks: Fault = {
  name: 'lost-disks',
  about: 'machines come back empty',
  countsBites: true,
  arrange: (stage) =>
    stage.nowAndThen(120_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.scrapped) comeBackEmpty(stage.world, chance, node);
    }),
};

export function comeBackEmpty(world: World, chance: Chance, node: SimNode): void {
  node.lose();
  world.fire(lostDisks.name);
  boot(world, chance, node);
}

/** Whatever disk it has now. */
export function boot(world: World, chance: Chance, node: SimNode): void {
  node.reboot();
  world.clock.after(chance.next() * chance.pick([1_000, 200_000]), () => node.start());
}
