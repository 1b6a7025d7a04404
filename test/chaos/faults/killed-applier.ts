import { stateOf, STATES } from '../journals.js';
import { groupIn, startAgain, type Fault } from './fault.js';

/**
 * kill -9 of the process of the first node whose journal is in a given state. The states in which its nodes died are
 * read from their journals afterwards, when nothing can change them any more.
 */
export const killedApplier: Fault = {
  name: 'killed-applier',
  plan: (chance) => ({ target: chance.pick(STATES), forMs: chance.integer(0, 5_000) }),
  async run(stage, { target, forMs }) {
    const { fleet, note } = stage;
    const group = await groupIn(stage, target);
    if (group === undefined) return;
    const killedMs = Date.now();
    await fleet.processes.kill(group);
    for (const node of fleet.nodes.filter((one) => stage.groupOf(one) === group))
      note(`died ${stateOf(fleet, node, killedMs)}`);
    await stage.pause(forMs);
    startAgain(stage, group);
  },
};
