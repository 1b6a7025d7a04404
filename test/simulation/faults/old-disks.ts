import type { Chance } from '../chance.js';
import type { Disk } from '../disk.js';
import type { SimNode } from '../sim-node.js';
import type { World } from '../world.js';
import type { Fault } from './fault.js';
import { boot } from './lost-disks.js';

/** Copies of disks, by node. */
export type Backups = Map<string, Disk>;

/** Machines come back as they were long ago: a backup, or a snapshot of a virtual machine, was put back. */
export const oldDisks: Fault = {
  name: 'old-disks',
  about: 'machines come back as they were long ago',
  countsBites: true,
  arrange(stage) {
    const backups: Backups = new Map();
    stage.nowAndThen(60_000, (chance) => {
      const node = stage.anyNode(chance);
      if (node.scrapped) return;
      if (chance.happens(0.5)) backUp(backups, node);
      else comeBackOld(stage.world, chance, node, backups);
    });
  },
};

export const backUp = (backups: Backups, node: SimNode): void => void backups.set(node.name, node.disk.backup());

/** False where there is no backup. */
export function comeBackOld(world: World, chance: Chance, node: SimNode, backups: Backups): boolean {
  const old = backups.get(node.name)?.backup();
  if (old === undefined) return false;
  node.restore(old);
  world.fire(oldDisks.name);
  boot(world, chance, node);
  return true;
}
