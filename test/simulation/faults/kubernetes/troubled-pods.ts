import type { Fault } from '../fault.js';

export const troubledPods: Fault = {
  name: 'troubled-pods',
  about: "pods never end, come back on their Node, are nobody's, or have budgets that allow nothing for a time",
  arrange(stage) {
    const { world } = stage;
    const workloads = world.cluster?.workloads;
    if (workloads === undefined) return;
    workloads.stuck = stage.chance.pick([0, 0.1, 0.4]);
    workloads.returning = stage.chance.pick([0, 0.2, 0.6]);
    stage.nowAndThen(60_000, (chance) => {
      if (chance.flip(0.3)) return workloads.stray(stage.anyNode(chance).name);
      const app = chance.pick(workloads.apps);
      const before = app.min;
      app.min = app.replicas;
      world.clock.after(
        chance.next() * chance.pick([10_000, 200_000]),
        () => (app.min = Math.min(before, app.replicas - 1)),
      );
    });
  },
};
