import type { Fault } from './fault.js';

export const readAgain: Fault = {
  name: 'read-again',
  about: 'copies read old inputs once more, as when the server lost their acks, or start from old snapshots',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const kept = new Map(world.copies.map((copy) => [copy, copy.snapshot()]));
    stage.nowAndThen(30_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const what = chance.next();
      if (what < 0.5) {
        stage.tookEffect();
        return copy.rewind(chance.integer(1, 30));
      }
      if (what < 0.75) return void kept.set(copy, copy.snapshot());
      // All copies of a service share its snapshots.
      const old = kept.get(chance.pick(world.copies.filter(({ kind }) => kind === copy.kind)));
      stage.tookEffect();
      copy.kill();
      copy.start(old);
      copy.lead();
    });
  },
};
