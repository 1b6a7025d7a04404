import type { Fault } from './fault.js';

/** kill -9 of nats-server. */
export const killedServer: Fault = {
  name: 'killed-server',
  plan: (chance) => ({ target: '', forMs: chance.integer(0, 4_000) }),
  async run({ fleet: { server }, pause }, { forMs }) {
    if (!server.isUp) return;
    server.kill();
    await pause(forMs);
    await server.restore();
  },
};
