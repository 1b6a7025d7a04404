import { DRAINER } from '../shape.js';
import { killFor, type Fault } from './fault.js';

/** kill -9 of the external drainer. Nodes wait for it, or are given back late. */
export const killedDrainer: Fault = {
  name: 'killed-drainer',
  plan: (chance) => ({ target: DRAINER, forMs: chance.integer(500, 5_000) }),
  run: (stage, { target, forMs }) => killFor(stage, [target], forMs),
};
