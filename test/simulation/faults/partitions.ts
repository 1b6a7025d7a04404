import type { Fault } from './fault.js';

/** Nodes and copies of services lose their connection, some for longer than a deadline. */
export const partitions: Fault = {
  name: 'partitions',
  about: 'nodes and copies of services lose their connection, some for longer than a deadline',
  arrange(stage) {
    const { clock } = stage.world;
    stage.nowAndThen(25_000, (chance) => {
      const forMs = chance.next() * chance.pick([5_000, 60_000, 300_000]);
      const lost = chance.happens(0.6) ? stage.anyNode(chance) : stage.anyCopy(chance);
      lost.disconnect();
      clock.after(forMs, () => lost.reconnect());
    });
  },
};
