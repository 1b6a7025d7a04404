import { drive, trim, type Effects, type TrimPort } from '#libs/engine';
import type { World } from '../world/world.js';
import { keepSnapshots } from './deaths.js';
import type { Fault } from './fault.js';

export const killedTrims: Fault = {
  name: 'killed-trims',
  about: 'the ledger is trimmed behind snapshots all the time, by copies that die in the middle of it',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    keepSnapshots(stage);
    const services = [...new Set(world.copies.map(({ kind }) => kind.core.name))];
    stage.nowAndThen(10_000, (chance) => {
      let stepsLeft = chance.flip(0.3) ? chance.integer(0, 12) : Infinity;
      drive(trim(services, 0), (effect, answer) => {
        if (stepsLeft-- === 0) return;
        world.clock.after(chance.next() * 200, () => {
          const known = perform(world, effect);
          if (effect.do === 'purge') stage.tookEffect();
          answer(known);
        });
      });
    });
  },
};

function perform({ bus, clock, mutant }: World, effect: Effects<TrimPort>): unknown {
  switch (effect.do) {
    case 'list-snapshots':
      return bus.snapshotsOf(effect.service);
    case 'read-snapshot': {
      const stored = bus.snapshots.get(effect.snapshot.name);
      const isSame = stored?.info.sequence === effect.snapshot.sequence && stored.text !== undefined;
      return isSame ? { sequence: effect.snapshot.sequence, state: undefined } : undefined;
    }
    case 'ledger-age':
      return {
        first: bus.first,
        last: bus.last,
        messages: bus.last - bus.first + 1,
        firstStoredMs: 0,
        nowMs: clock.nowMs,
      };
    case 'stored-at':
      return 0;
    case 'purge': {
      const before = bus.first;
      bus.first = Math.max(before, mutant?.trimsAll === true ? bus.last : effect.upTo + 1);
      return bus.first - before;
    }
    case 'remove-snapshot':
      return bus.snapshots.delete(effect.snapshot.name);
    case 'log':
      return undefined;
  }
}
