import type { Fault } from './fault.js';

/** The server runs, but every connection to it is cut and refused. */
export const refusingBus: Fault = {
  name: 'refusing-bus',
  plan: (chance) => ({ target: '', forMs: chance.integer(500, 8_000) }),
  async run({ fleet: { server }, pause }, { forMs }) {
    await server.refuse();
    await pause(forMs);
    await server.restore();
  },
};
