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
      const reboots = chance.flip(0.25);
      const againMs = chance.next() * chance.pick([1_000, 30_000, 400_000]);
      node.dieAfter(chance.integer(0, 25), 'killed', () => {
        if (reboots) node.reboot();
        stage.world.clock.after(againMs, () => node.start());
      });
    });
  },
};

/** The power fails during a write of the journal: half of it is on disk, and the machine boots again. */
export const tornJournals: Fault = {
  name: 'torn-journals',
  about: 'power fails in the middle of writing a journal',
  countsEffects: true,
  arrange(stage) {
    stage.nowAndThen(45_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const againMs = chance.next() * 60_000;
      node.dieAfter(chance.integer(0, 20), 'torn', () => {
        node.reboot();
        stage.world.clock.after(againMs, () => node.start());
      });
    });
  },
};

/**
 * Appliers hang in any step of a change. Their guards kill them, and either the guard or the next applier rolls back.
 */
export const hungAppliers: Fault = {
  name: 'hung-appliers',
  about: 'appliers hang in the middle of a change; their guards kill them and roll back',
  countsEffects: true,
  arrange(stage) {
    const { clock } = stage.world;
    stage.nowAndThen(45_000, (chance) => {
      const node = stage.anyNode(chance);
      if (!node.alive) return;
      const againMs = chance.next() * chance.pick([1, 5_000, 200_000]);
      node.hangAfter(chance.integer(0, 20), stage.endMs, () => clock.after(againMs, () => node.start()));
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
      const snapshot = chance.flip(0.5) ? copy.snapshot() : undefined;
      const againMs = chance.next() * chance.pick([1_000, 20_000, 120_000]);
      copy.dieAfter(chance.integer(0, 12), () => startAgain(stage.world, copy, againMs, snapshot));
    });
  },
};

/** A takeover takes time, and copies die between any two of its steps. Another copy must start it again. */
export const killedTakeOvers: Fault = {
  name: 'killed-take-overs',
  about: 'taking over takes up to seconds, and copies die in the middle of it',
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    slowTakeOvers(stage);
    stage.nowAndThen(30_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const againMs = chance.next() * 20_000;
      world.leader(copy.kind.core.name)?.follow();
      copy.dieAfter(chance.integer(0, 3), () => diedInTime(stage, copy, againMs), 'taking-over');
      copy.lead();
    });
  },
};

/**
 * Copies store snapshots and start from them. They die while they write or load one, or while they read the ledger
 * after it.
 */
export const killedStarts: Fault = {
  name: 'killed-starts',
  about: 'copies keep snapshots, and die while they start from one or write one',
  countsEffects: true,
  arrange(stage) {
    slowTakeOvers(stage);
    keepSnapshots(stage);
    stage.nowAndThen(20_000, (chance) => {
      const copy = stage.anyCopy(chance);
      if (!copy.alive) return;
      const againMs = chance.next() * 20_000;
      copy.kill();
      copy.dieAfter(chance.integer(0, 6), () => diedInTime(stage, copy, againMs), 'starting');
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
  stage.tookEffect();
  startAgain(stage.world, copy, againMs);
}

const startAgain = ({ clock }: World, copy: ServiceCopy, afterMs: number, snapshot?: NewSnapshot): void =>
  clock.after(afterMs, () => {
    if (!copy.alive) copy.start(snapshot);
  });
