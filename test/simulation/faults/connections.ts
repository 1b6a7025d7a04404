import type { Fault } from './fault.js';

const MOST_WRONG_MS = 10 * 60_000;

export const partitions: Fault = {
  name: 'partitions',
  about: 'nodes and copies of services lose their connection, some for longer than a deadline',
  arrange(stage) {
    stage.nowAndThen(25_000, (chance) => {
      const forMs = chance.next() * chance.pick([5_000, 60_000, 300_000]);
      const lost = chance.happens(0.6) ? stage.anyNode(chance) : stage.anyCopy(chance);
      lost.disconnect();
      stage.world.clock.after(forMs, () => lost.reconnect());
    });
  },
};

/** For longer than a deadline or than silence takes. */
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

/** The leader lease is no lock. */
export const staleLeaders: Fault = {
  name: 'stale-leaders',
  about: 'two or three copies of a service lead at once, some for long',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(25_000, (chance) => {
      const copy = stage.anyCopy(chance);
      const forMs = chance.next() * chance.pick([2_000, 60_000, 600_000]);
      const before = stage.world.leader(copy.kind.core.name);
      copy.lead();
      if (before !== undefined && before !== copy && copy.elected) stage.bite();
      stage.world.clock.after(forMs, () => copy.follow());
    });
  },
};

/** What wall clocks say is for people only. */
export const wrongClocks: Fault = {
  name: 'wrong-clocks',
  about: 'wall clocks are wrong by up to ten minutes, and jump',
  arrange(stage) {
    stage.nowAndThen(20_000, (chance) => {
      const one = chance.happens(0.5) ? stage.anyNode(chance) : stage.anyCopy(chance);
      one.wallSkewMs = chance.whole(-MOST_WRONG_MS, MOST_WRONG_MS);
    });
  },
};
