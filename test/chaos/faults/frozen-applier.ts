import { stateOf, STATES } from '../journals.js';
import { freezeFor, groupIn, type Fault } from './fault.js';

/** Appliers stand still for longer than a lease of their nodes, from a given state of the journal of one of them on. */
export const frozenApplier: Fault = {
  name: 'frozen-applier',
  plan: (chance, shape) => ({ target: chance.pick(STATES), forMs: shape.freezeMs + chance.whole(0, 3_000) }),
  async strike(stage, { target, forMs }) {
    const group = await groupIn(stage, target);
    if (group === undefined) return;
    const frozen = freezeFor(stage, group, forMs);
    for (const node of stage.fleet.nodes.filter((one) => stage.groupOf(one) === group))
      stage.note(`froze ${stateOf(stage.fleet, node)}`);
    await frozen;
  },
};
