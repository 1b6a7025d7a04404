import { killFor, type Fault } from './fault.js';

/** kill -9 of one copy of a service. */
export const killedService: Fault = {
  name: 'killed-service',
  plan: (chance, shape) => ({ target: chance.pick(shape.services), forMs: chance.integer(0, 6_000) }),
  run: (stage, { target, forMs }) => killFor(stage, [target], forMs),
};
