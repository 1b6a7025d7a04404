import { killFor, type Fault } from './fault.js';

/** kill -9 of both copies of a service: nobody does its work for a while. */
export const killedPair: Fault = {
  name: 'killed-pair',
  plan: (chance, shape) => ({ target: chance.pick(shape.services).replace(/-2$/, ''), forMs: chance.whole(0, 4_000) }),
  strike: (stage, { target, forMs }) => killFor(stage, [target, `${target}-2`], forMs),
};
