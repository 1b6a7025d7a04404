import { becomingTargets } from './unreachable-targets.js';
import { SimTarget } from '../world/sim-target.js';
import type { Fault } from './fault.js';

/** For a moment, until it is silent, or until its rollout has ended. */
const UNREADY_MS = [3_000, 60_000, 400_000];

export const unreadyTargets: Fault = {
  name: 'unready-targets',
  about: 'half of the nodes are targets whose applier runs elsewhere, and now and then one answers, but is not ready',
  arrange(stage) {
    const { world } = stage;
    const machines = becomingTargets(stage);
    stage.nowAndThen(60_000, (chance) => {
      const shared = [...world.nodes.values()].filter((node) => node instanceof SimTarget);
      const node = chance.pick([...machines, ...shared]);
      node.becomeUnready(`control plane ${chance.pick(['not ready', 'being created'])}`);
      world.clock.after(chance.next() * chance.pick(UNREADY_MS), () => node.answer());
    });
  },
};
