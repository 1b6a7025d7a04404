import { killFor, type Fault } from './fault.js';

/** kill -9 of both copies of a service. Nothing does its work for a while. */
export const killedPair: Fault = {
  name: 'killed-pair',
  plan: (chance, shape) => ({
    target: chance.pick(shape.services).replace(/-2$/, ''),
    forMs: chance.integer(0, 4_000),
  }),
  run: (stage, { target, forMs }) => killFor(stage, [target, `${target}-2`], forMs),
};
