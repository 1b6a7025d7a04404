import type { Chance } from '../chance.js';
import { remove } from '../people/deeds.js';
import type { SimNode } from '../sim-node.js';
import type { World } from '../world.js';
import type { Fault } from './fault.js';

/** Machines are switched off for good; some are removed by somebody, later. */
export const scrappedMachines: Fault = {
  name: 'scrapped-machines',
  about: 'machines are switched off for good',
  countsBites: true,
  arrange: (stage) => stage.nowAndThen(300_000, (chance) => scrap(stage.world, chance, stage.anyNode(chance))),
};

/** The first two are never all that is left to scrap: where only they ever were, both stay. */
export function scrap(world: World, chance: Chance, node: SimNode): void {
  if (node.scrapped || world.nodes.size <= 2) return;
  node.scrap();
  world.fire(scrappedMachines.name);
  if (chance.happens(0.6)) world.clock.after(chance.next() * 300_000, () => remove(world, node.name));
}
