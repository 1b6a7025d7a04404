import type { Fault } from './fault.js';

export const readAgain: Fault = {
  name: 'read-again',
  about: 'copies read old inputs once more, as when the server lost their acks, or start from old snapshots',
  countsBites: true,
  arrange(stage) {
    const { world } = stage;
    const kept = new Map(world.copies.map((copy) => [copy, copy.snapshot()]));
    stage.nowAndThen(30_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const what = chance.next();
      if (what < 0.5) {
        stage.bite();
        return copy.rewind(chance.whole(1, 30));
      }
      if (what < 0.75) return void kept.set(copy, copy.snapshot());
      // A snapshot is everybody's who is of that kind.
      const old = kept.get(chance.pick(world.copies.filter(({ kind }) => kind === copy.kind)));
      stage.bite();
      copy.kill();
      copy.start(old);
      copy.lead();
    });
  },
};
