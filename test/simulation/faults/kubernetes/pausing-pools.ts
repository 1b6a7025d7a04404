import { KEEP_PAUSED_ANNOTATION } from '#libs/contracts';
import type { Chance } from '../../world/chance.js';
import { PAUSABLES, type Pausables } from '../../kubernetes/pausables.js';
import { publish } from '../../people/deeds.js';
import { poolThatPauses } from '../../people/manifests.js';
import type { Fault } from '../fault.js';

export const pausingPools: Fault = {
  name: 'pausing-pools',
  about: 'pools pause objects for their drains, and people and controllers change these objects, or delete them',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const { cluster } = world;
    if (cluster === undefined) return;
    const { pausables } = cluster;
    for (const name of ['edge', 'core']) publish(world, poolThatPauses(stage.chance, name));
    stage.nowAndThen(90_000, (chance) =>
      publish(world, poolThatPauses(chance, chance.pick(['edge', 'core', 'zone-a']))),
    );
    stage.nowAndThen(30_000, (chance) => {
      const forMs = chance.next() * chance.pick([500, 20_000, 100_000]);
      meddle(pausables, chance, (act) => world.clock.after(forMs, act));
    });
    // Most dangerous right after a drain has begun or ended.
    world.listeners.push((fact) => {
      const isMoment = fact.type === 'node.cordoned' || fact.type === 'node.lease.uncordoning';
      if (!isMoment || world.clock.nowMs >= stage.endMs || !stage.chance.flip(0.1)) return;
      world.clock.after(stage.chance.next() * stage.chance.pick([5, 50, 5_000]), () => {
        if (world.clock.nowMs < stage.endMs) stage.occur((chance) => meddle(pausables, chance, (act) => act()));
      });
    });
    world.pauseListeners.push(() => stage.tookEffect());
  },
};

function meddle(pausables: Pausables, chance: Chance, later: (act: () => void) => void): void {
  const name = chance.pick(PAUSABLES);
  switch (chance.pick(['pause', 'unpause', 'twice', 'keep', 'updating', 'updating', 'deleted'] as const)) {
    case 'pause':
      return void pausables.write(name, { paused: true }, 'person');
    case 'unpause':
      return void pausables.write(name, { paused: false }, 'person');
    case 'twice':
      pausables.write(name, { paused: false }, 'person');
      return void pausables.write(name, { paused: true }, 'person');
    case 'keep':
      return void pausables.write(name, { annotations: { [KEEP_PAUSED_ANNOTATION]: 'please' } }, 'person');
    case 'updating':
      pausables.write(name, { updating: true }, 'controller');
      return later(() => void pausables.write(name, { updating: false }, 'controller'));
    case 'deleted':
      pausables.remove(name);
      return later(() => pausables.register(name));
  }
}
