import { DRAINER } from '../shape.js';
import { killFor, type Fault } from './fault.js';

/** kill -9 of the external drainer: nodes wait for it, or are given back late. */
export const killedDrainer: Fault = {
  name: 'killed-drainer',
  plan: (chance) => ({ target: DRAINER, forMs: chance.whole(500, 5_000) }),
  strike: (stage, { target, forMs }) => killFor(stage, [target], forMs),
};
