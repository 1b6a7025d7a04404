import type { NewSnapshot } from '#libs/engine';
import type { ServiceCopy } from '../world/service-copy.js';
import type { World } from '../world/world.js';
import type { Fault, Stage } from './fault.js';

export const killedNodes: Fault = {
  name: 'killed-nodes',
  about: 'appliers die between any two steps, and start again; some machines reboot',
  arrange(stage) {
    stage.nowAndThen(35_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const reboots = chance.happens(0.25);
      const againMs = chance.next() * chance.pick([1_000, 30_000, 400_000]);
      node.dieAfter(chance.whole(0, 25), 'killed', () => {
        if (reboots) node.reboot();
        stage.world.clock.after(againMs, () => node.start());
      });
    });
  },
};

/** Power fails in the middle of writing a journal: half of it stands there, and the machine boots again. */
export const tornJournals: Fault = {
  name: 'torn-journals',
  about: 'power fails in the middle of writing a journal',
  countsBites: true,
  arrange(stage) {
    stage.nowAndThen(45_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const againMs = chance.next() * 60_000;
      node.dieAfter(chance.whole(0, 20), 'torn', () => {
        node.reboot();
        stage.world.clock.after(againMs, () => node.start());
      });
    });
  },
};

/** Appliers hang in any step of a change. What guards them kills them, and one of the two rolls back. */
export const hungAppliers: Fault = {
  name: 'hung-appliers',
  about: 'appliers hang in the middle of a change; their guards kill them and roll back',
  countsBites: true,
  arrange(stage) {
    const { clock } = stage.world;
    stage.nowAndThen(45_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const againMs = chance.next() * chance.pick([1, 5_000, 200_000]);
      node.hangAfter(chance.whole(0, 20), stage.endMs, () => clock.after(againMs, () => node.start()));
    });
  },
};

export const killedServices: Fault = {
  name: 'killed-services',
  about: 'copies of services die between any two steps, and start again from nothing or from a snapshot',
  arrange(stage) {
    stage.nowAndThen(40_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const snapshot = chance.happens(0.5) ? copy.snapshot() : undefined;
      const againMs = chance.next() * chance.pick([1_000, 20_000, 120_000]);
      copy.dieAfter(chance.whole(0, 12), () => startAgain(stage.world, copy, againMs, snapshot));
    });
  },
};

/** Taking over takes time, and copies die between any two of its steps; another has to begin it again. */
export const killedTakeOvers: Fault = {
  name: 'killed-take-overs',
  about: 'taking over takes up to seconds, and copies die in the middle of it',
  countsBites: true,
  arrange(stage) {
    const { world } = stage;
    slowTakeOvers(stage);
    stage.nowAndThen(30_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const againMs = chance.next() * 20_000;
      world.leader(copy.kind.core.name)?.follow();
      copy.dieAfter(chance.whole(0, 3), () => diedInTime(stage, copy, againMs), 'taking-over');
      copy.lead();
    });
  },
};

/** Copies keep snapshots and start from them; they die while they write one, load one, or read on behind it. */
export const killedStarts: Fault = {
  name: 'killed-starts',
  about: 'copies keep snapshots, and die while they start from one or write one',
  countsBites: true,
  arrange(stage) {
    slowTakeOvers(stage);
    keepSnapshots(stage);
    stage.nowAndThen(20_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const againMs = chance.next() * 20_000;
      copy.kill();
      copy.dieAfter(chance.whole(0, 6), () => diedInTime(stage, copy, againMs), 'starting');
      copy.start();
    });
  },
};

function slowTakeOvers({ world: { conditions }, chance }: Stage): void {
  conditions.takeOverMs = Math.max(conditions.takeOverMs, chance.pick([5, 300, 3_000]));
}

export function keepSnapshots({ world, chance }: Stage): void {
  world.conditions.snapshotFacts = chance.pick([5, 20, 60]);
  for (const copy of world.copies) {
    copy.kill();
    copy.start();
  }
}

function diedInTime(stage: Stage, copy: ServiceCopy, againMs: number): void {
  stage.bite();
  startAgain(stage.world, copy, againMs);
}

const startAgain = ({ clock }: World, copy: ServiceCopy, afterMs: number, snapshot?: NewSnapshot): void =>
  clock.after(afterMs, () => {
    if (!copy.alive) copy.start(snapshot);
  });
