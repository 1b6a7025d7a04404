import { freezeFor, type Fault } from './fault.js';

/** A copy of a service stands still for longer than its term as a leader, and then goes on as if nothing had been. */
export const frozenService: Fault = {
  name: 'frozen-service',
  plan: (chance, shape) => ({ target: chance.pick(shape.services), forMs: chance.whole(7_000, 11_000) }),
  strike: (stage, { target, forMs }) => freezeFor(stage, target, forMs),
};
