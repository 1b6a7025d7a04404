import type { Fault } from './fault.js';

/**
 * nats-server answers nothing, some times for longer than a leader's term (6 s), while every connection to it stays.
 */
export const frozenServer: Fault = {
  name: 'frozen-server',
  plan: (chance) => ({ target: '', forMs: chance.whole(2_000, 9_000) }),
  async strike({ fleet: { server }, pause }, { forMs }) {
    if (!server.isUp) return;
    server.freeze();
    await pause(forMs);
    await server.mend();
  },
};
