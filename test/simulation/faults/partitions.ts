import { nowAndThen, type Fault } from './fault.js';

/** Nodes and copies of services lose their connection, some for longer than a deadline. */
export const partitions: Fault = {
  name: 'partitions',
  arrange(world, endMs) {
    nowAndThen(world, endMs, 30_000, () => {
      const forMs = world.chance.next() * world.chance.pick([5_000, 60_000, 300_000]);
      if (world.chance.happens(0.6)) {
        const node = world.chance.pick([...world.nodes.values()]);
        node.connected = false;
        world.clock.after(forMs, () => node.reconnect());
      } else {
        const copy = world.chance.pick(world.copies);
        copy.connected = false;
        world.clock.after(forMs, () => {
          copy.connected = true;
          copy.wake();
        });
      }
    });
  },
};
