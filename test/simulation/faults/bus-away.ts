import type { Fault } from './fault.js';

/** The server is away for everybody, for longer than a deadline or than silence takes. */
export const busAway: Fault = {
  name: 'bus-away',
  about: 'the server is away for everybody, some times for longer than any deadline',
  arrange(stage) {
    const { world } = stage;
    stage.nowAndThen(180_000, (chance) => {
      const everybody = [...world.copies, ...world.nodes.values()];
      for (const one of everybody) one.disconnect();
      const backMs = chance.pick([2_000, 50_000, 130_000, 400_000]);
      for (const one of everybody) world.clock.after(backMs + chance.next() * 10_000, () => one.reconnect());
    });
  },
};
