import { freezeFor, type Fault } from './fault.js';

/** Freezes a copy of a service for longer than its term as a leader, and then lets it continue. */
export const frozenService: Fault = {
  name: 'frozen-service',
  plan: (chance, shape) => ({ target: chance.pick(shape.services), forMs: chance.integer(7_000, 11_000) }),
  run: (stage, { target, forMs }) => freezeFor(stage, target, forMs),
};
