import type { World } from '../../world/world.js';
import type { Fault } from '../fault.js';

export const otherOperators: Fault = {
  name: 'other-operators',
  about: 'other tools take nodes of a pool, as far as its budget has room, some for a time, and give them back or not',
  arrange(stage) {
    const { world } = stage;
    stage.nowAndThen(40_000, (chance) => {
      const { name: node } = stage.anyNode(chance);
      const owner = chance.pick(['kured', 'people']);
      const forMs = chance.next() * chance.pick([5_000, 60_000, 200_000]);
      const isLent = chance.flip(0.4);
      world.ask(
        'scheduler',
        {
          op: 'pool.take',
          node,
          pool: '',
          owner,
          reason: 'a new kernel',
          by: owner,
          ...(isLent ? { forMs: Math.max(1_000, Math.round(forMs)) } : {}),
        },
        (answer) => {
          if (answer?.ok === true) world.fire('taken');
          // Also if there was no answer, because the node may have been taken. A node that was taken for a limited time
          // returns on its own.
          if (answer?.ok !== false && !isLent) world.clock.after(forMs, () => give(world, node, owner));
        },
      );
    });
  },
};

/** Repeats the request until there is an answer. */
function give(world: World, node: string, owner: string): void {
  world.ask('scheduler', { op: 'pool.give', node, owner, by: owner }, (answer) => {
    if (answer === undefined) world.clock.after(5_000, () => give(world, node, owner));
  });
}
