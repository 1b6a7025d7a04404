import type { SimNode } from '../world/sim-node.js';
import type { Fault, Stage } from './fault.js';

/** Until the next call, until it is silent, or until its rollout has ended. */
const AWAY_MS = [5_000, 60_000, 180_000, 400_000];

export const unreachableTargets: Fault = {
  name: 'unreachable-targets',
  about: 'half of the nodes are targets whose applier runs elsewhere, and now and then one does not answer it',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const targets = becomingTargets(stage);
    stage.nowAndThen(60_000, (chance) => {
      const node = chance.pick(targets);
      node.trouble = { ...node.trouble, gone: true };
      world.clock.after(chance.pick(AWAY_MS), () => node.answer());
    });
  },
};

/** Until shortly before the lease of a minute is over, or until after that. */
const PAUSES_MS = [30_000, 50_000, 90_000];

export const pausedTargets: Fault = {
  name: 'paused-targets',
  about: 'half of the nodes are targets whose applier runs elsewhere, and is paused in the middle of a lease',
  countsEffects: true,
  arrange(stage) {
    const targets = becomingTargets(stage);
    stage.nowAndThen(60_000, (chance) => chance.pick(targets).pause(chance.pick(PAUSES_MS)));
  },
};

export function becomingTargets({ world }: Stage): readonly SimNode[] {
  const targets = [...world.nodes.values()].filter((_, i) => i % 2 === 0);
  for (const node of targets) node.becomeTarget();
  return targets;
}
