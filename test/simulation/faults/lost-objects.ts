import { publish } from '../people/deeds.js';
import { objectChange } from '../people/manifests.js';
import { sha256 } from '../world/bus.js';
import type { Fault } from './fault.js';

export const lostObjects: Fault = {
  name: 'lost-objects',
  about: 'the object store loses content that people have just published, or it is changed there, for a while',
  countsEffects: true,
  arrange(stage) {
    const { bus, clock } = stage.world;
    stage.nowAndThen(120_000, (chance) => {
      const object = sha256(`object ${chance.integer(0, 2 ** 30)}`);
      bus.objects.set(object, 'right');
      publish(stage.world, objectChange(chance, object));
      const isLost = chance.flip(0.5);
      clock.after(chance.next() * 4_000, () => {
        if (isLost) bus.objects.delete(object);
        else bus.objects.set(object, 'changed');
      });
      clock.after(4_000 + chance.next() * chance.pick([10_000, 60_000]), () => void bus.objects.set(object, 'right'));
    });
  },
};
