import type { Fault } from './fault.js';
import { comeBackEmpty, lostDisks } from './lost-disks.js';
import { join, newMachines } from './new-machines.js';
import { backUp, comeBackOld, oldDisks, type Backups } from './old-disks.js';
import { scrap, scrappedMachines } from './scrapped-machines.js';

/** Machines come and go, in all ways at once. */
export const otherMachines: Fault = {
  name: 'other-machines',
  about: 'machines join, are scrapped, come back empty, or come back as they were long ago',
  parts: [newMachines, scrappedMachines, lostDisks, oldDisks],
  arrange(stage) {
    const { world } = stage;
    const backups: Backups = new Map();
    stage.nowAndThen(50_000, (chance) => {
      const what = chance.next();
      if (what < 0.2) return join(world, chance);
      const node = stage.anyNode(chance);
      if (node.scrapped) return;
      if (what < 0.55) return backUp(backups, node);
      if (what < 0.62 && world.nodes.size > 2) return scrap(world, chance, node);
      if (what < 0.75 || !comeBackOld(world, chance, node, backups)) comeBackEmpty(world, chance, node);
    });
  },
};
