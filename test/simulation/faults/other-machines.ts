import type { Disk } from '../disk.js';
import { remove } from '../people/deeds.js';
import type { Fault } from './fault.js';

/** Machines join, are switched off for good, come back empty, or come back as they were long ago. */
export const otherMachines: Fault = {
  name: 'other-machines',
  about: 'machines join, are scrapped, come back empty, or come back as they were long ago',
  arrange(stage) {
    const { world } = stage;
    const backups = new Map<string, Disk>();
    stage.nowAndThen(50_000, (chance) => {
      const what = chance.next();
      if (what < 0.2) {
        if (world.nodes.size < 9) world.addNode(`late-${world.nodes.size}`, { role: chance.pick(['edge', 'core']), zone: 'a' }, chance.happens(0.5));
        return;
      }
      const node = stage.anyNode(chance);
      if (node.scrapped) return;
      if (what < 0.55) return void backups.set(node.name, node.disk.backup());
      if (what < 0.62 && world.nodes.size > 2) {
        node.scrap();
        if (chance.happens(0.6)) world.clock.after(chance.next() * 300_000, () => remove(world, node.name));
        return;
      }
      const old = what < 0.75 ? undefined : backups.get(node.name)?.backup();
      if (old === undefined) node.lose();
      else node.restore(old);
      node.reboot();
      world.clock.after(chance.next() * chance.pick([1_000, 200_000]), () => node.start());
    });
  },
};
