import type { Fault } from '../fault.js';

export const unreadyNodes: Fault = {
  name: 'unready-nodes',
  about:
    'Nodes are not ready for a time, or are deleted and made again with another uid, some at once and some much later',
  arrange(stage) {
    const { world } = stage;
    const { cluster } = world;
    if (cluster === undefined) return;
    stage.nowAndThen(50_000, (chance) => {
      const { name } = stage.anyNode(chance);
      const forMs = chance.next() * chance.pick([500, 30_000, 200_000]);
      if (chance.flip(0.6)) {
        cluster.write(name, { ready: false }, 'kubelet');
        return world.clock.after(forMs, () => cluster.write(name, { ready: true }, 'kubelet'));
      }
      // As if a person removed it: it has left, and its unit is free when the time of its lease is over, whether or not
      // the applier can be reached.
      world.excused.add(name);
      cluster.remove(name);
      world.clock.after(forMs, () => cluster.register(name));
    });
  },
};
