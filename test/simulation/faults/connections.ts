import { publish } from '../people/deeds.js';
import { untriedChange } from '../people/manifests.js';
import type { Fault } from './fault.js';

const MOST_WRONG_MS = 10 * 60_000;

export const partitions: Fault = {
  name: 'partitions',
  about: 'nodes and copies of services lose their connection, some for longer than a deadline',
  arrange(stage) {
    stage.nowAndThen(25_000, (chance) => {
      const forMs = chance.next() * chance.pick([5_000, 60_000, 300_000]);
      const victim = chance.flip(0.6) ? stage.anyNode(chance) : stage.anyCopy(chance);
      victim.disconnect();
      stage.world.clock.after(forMs, () => victim.reconnect());
    });
  },
};

/** A server that is cut off from the others keeps its clients, and answers reads with what it last got. */
export const laggingServers: Fault = {
  name: 'lagging-servers',
  about: 'nodes connect to a server that lags, or that is cut off from the others, and some restart meanwhile',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    stage.nowAndThen(30_000, (chance) => {
      const node = stage.anyNode(chance);
      if (node.isTarget || node.server !== undefined) return;
      const isCutOff = chance.flip(0.6);
      const at = Math.max(0, world.bus.viewsWritten - (chance.flip(0.5) ? 0 : chance.integer(1, 200)));
      const isRestarted = chance.flip(0.5);
      if (isRestarted) node.kill();
      node.moveTo({ at, isCutOff });
      if (isRestarted) world.clock.after(chance.next() * chance.pick([1_000, 100_000]), () => node.start());
      const forMs = isCutOff ? chance.pick([20_000, 90_000, 400_000]) : chance.pick([100, 2_000, 20_000]);
      world.clock.after(chance.next() * forMs, () => node.moveTo(undefined));
    });
  },
};

/** The bus is away for longer than a deadline, or than the time until a node counts as silent. */
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

/** No node can try a change that is published while all are silent, so it is committed untried. */
export const awayTogether: Fault = {
  name: 'away-together',
  about: 'all nodes lose their connection, and a change is published that only some of them can apply, or none',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const untried = new Set<string>();
    world.listeners.push((fact) => {
      if (fact.type === 'node.lease.granted' && fact.kind === 'corrective' && untried.size > 0) stage.tookEffect();
    });
    stage.nowAndThen(240_000, (chance) => {
      const nodes = [...world.nodes.values()];
      for (const node of nodes) node.disconnect();
      world.clock.after(60_000, () => untried.add(publish(world, untriedChange(world, chance))));
      const backMs = chance.pick([100_000, 150_000]);
      for (const node of nodes) world.clock.after(backMs + chance.next() * 10_000, () => node.reconnect());
    });
  },
};

/** The leader lease is not a lock. */
export const staleLeaders: Fault = {
  name: 'stale-leaders',
  about: 'two or three copies of a service lead at once, some for long',
  countsEffects: true,
  arrange(stage) {
    stage.nowAndThen(25_000, (chance) => {
      const copy = stage.anyCopy(chance);
      const forMs = chance.next() * chance.pick([2_000, 60_000, 600_000]);
      const before = stage.world.leader(copy.kind.core.name);
      copy.lead();
      if (before !== undefined && before !== copy && copy.elected) stage.tookEffect();
      stage.world.clock.after(forMs, () => copy.follow());
    });
  },
};

/** Wall clocks are only used to show times to people. */
export const wrongClocks: Fault = {
  name: 'wrong-clocks',
  about: 'wall clocks are wrong by up to ten minutes, and jump',
  arrange(stage) {
    stage.nowAndThen(20_000, (chance) => {
      const one = chance.flip(0.5) ? stage.anyNode(chance) : stage.anyCopy(chance);
      one.wallSkewMs = chance.integer(-MOST_WRONG_MS, MOST_WRONG_MS);
    });
  },
};
