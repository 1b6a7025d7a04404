import { stateOf, STATES } from '../journals.js';
import { freezeFor, groupIn, type Fault } from './fault.js';

/**
 * Freezes appliers for longer than a lease of their nodes, starting when the journal of one of them reaches a given
 * state.
 */
export const frozenApplier: Fault = {
  name: 'frozen-applier',
  plan: (chance, shape) => ({ target: chance.pick(STATES), forMs: shape.freezeMs + chance.integer(0, 3_000) }),
  async run(stage, { target, forMs }) {
    const group = await groupIn(stage, target);
    if (group === undefined) return;
    const frozen = freezeFor(stage, group, forMs);
    for (const node of stage.fleet.nodes.filter((one) => stage.groupOf(one) === group))
      stage.note(`froze ${stateOf(stage.fleet, node)}`);
    await frozen;
  },
};
