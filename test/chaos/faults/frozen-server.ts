import type { Fault } from './fault.js';

/** Freezes nats-server, sometimes for longer than a leader's term (6 s). Its connections stay open. */
export const frozenServer: Fault = {
  name: 'frozen-server',
  plan: (chance) => ({ target: '', forMs: chance.integer(2_000, 9_000) }),
  async run({ fleet: { server }, pause }, { forMs }) {
    if (!server.isUp) return;
    server.freeze();
    await pause(forMs);
    await server.restore();
  },
};
