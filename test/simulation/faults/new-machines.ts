import type { Chance } from '../chance.js';
import type { World } from '../world.js';
import type { Fault } from './fault.js';

const MOST_NODES = 9;

/** Machines join in the middle of everything. */
export const newMachines: Fault = {
  name: 'new-machines',
  about: 'machines join',
  countsBites: true,
  arrange: (stage) => stage.nowAndThen(150_000, (chance) => join(stage.world, chance)),
};

export function join(world: World, chance: Chance): void {
  if (world.nodes.size >= MOST_NODES) return;
  world.addNode(`late-${world.nodes.size}`, { role: chance.pick(['edge', 'core']), zone: 'a' }, chance.happens(0.5));
  world.fire(newMachines.name);
}
