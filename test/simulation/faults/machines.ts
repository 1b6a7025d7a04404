import { remove } from '../people/deeds.js';
import type { SimNode } from '../world/sim-node.js';
import type { Chance } from '../world/chance.js';
import type { Disk } from '../world/disk.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';

const MOST_NODES = 9;
/** Copies of disks, by node. */
type Backups = Map<string, Disk>;

export const newMachines: Fault = {
  name: 'new-machines',
  about: 'machines join',
  countsEffects: true,
  arrange: (stage) => stage.nowAndThen(150_000, (chance) => join(stage.world, chance)),
};

export const scrappedMachines: Fault = {
  name: 'scrapped-machines',
  about: 'machines are switched off for good',
  countsEffects: true,
  arrange: (stage) => stage.nowAndThen(300_000, (chance) => scrap(stage.world, chance, stage.anyNode(chance))),
};

export const lostDisks: Fault = {
  name: 'lost-disks',
  about: 'machines come back empty',
  countsEffects: true,
  arrange: (stage) =>
    stage.nowAndThen(120_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.scrapped) comeBackEmpty(stage.world, chance, node);
    }),
};

/** A backup, or a snapshot of a virtual machine, was restored. */
export const oldDisks: Fault = {
  name: 'old-disks',
  about: 'machines come back as they were long ago',
  countsEffects: true,
  arrange(stage) {
    const backups: Backups = new Map();
    stage.nowAndThen(60_000, (chance) => {
      const node = stage.anyNode(chance);
      if (node.scrapped) return;
      if (chance.flip(0.5)) backups.set(node.name, node.disk.backup());
      else comeBackOld(stage.world, chance, node, backups);
    });
  },
};

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
      if (what < 0.55) return void backups.set(node.name, node.disk.backup());
      if (what < 0.62 && world.nodes.size > 2) return scrap(world, chance, node);
      if (what < 0.75 || !comeBackOld(world, chance, node, backups)) comeBackEmpty(world, chance, node);
    });
  },
};

function join(world: World, chance: Chance): void {
  if (world.nodes.size >= MOST_NODES) return;
  world.addNode(`late-${world.nodes.size}`, { role: chance.pick(['edge', 'core']), zone: 'a' }, chance.flip(0.5));
  world.fire(newMachines.name);
}

/**
 * The first two nodes are never the only ones left to scrap: if there are no others, both stay. Some are removed later.
 */
function scrap(world: World, chance: Chance, node: SimNode): void {
  if (node.scrapped || world.nodes.size <= 2) return;
  node.scrap();
  world.fire(scrappedMachines.name);
  if (chance.flip(0.6)) world.clock.after(chance.next() * 300_000, () => remove(world, node.name));
}

function comeBackEmpty(world: World, chance: Chance, node: SimNode): void {
  node.lose();
  world.fire(lostDisks.name);
  boot(world, chance, node);
}

/** Returns false if there is no backup. */
function comeBackOld(world: World, chance: Chance, node: SimNode, backups: Backups): boolean {
  const old = backups.get(node.name)?.backup();
  if (old === undefined) return false;
  node.replaceDisk(old);
  world.fire(oldDisks.name);
  boot(world, chance, node);
  return true;
}

function boot(world: World, chance: Chance, node: SimNode): void {
  node.reboot();
  world.clock.after(chance.next() * chance.pick([1_000, 200_000]), () => node.start());
}
