import type { Chance } from '../world/chance.js';
import { SimTarget } from '../world/sim-target.js';
import type { TargetCopy } from '../world/target-copy.js';
import type { World } from '../world/world.js';
import type { Fault, Stage } from './fault.js';

/** Not for as long as a lease, and for longer than one. */
const SOME_MS = [5_000, 30_000, 100_000, 300_000];
/** In any step, or in one of the few steps of a rollback. */
const strike = (copy: TargetCopy, chance: Chance, happen: () => void): void => {
  const inRollback = chance.flip(0.4);
  copy.strikeAfter(chance.integer(0, inRollback ? 8 : 25), happen, inRollback);
};

/** Something that happens to one copy of the applier of a target. */
type Act = (stage: Stage, target: SimTarget, copy: TargetCopy, chance: Chance) => void;

/** `noticed`: its effects are counted where they are noticed. */
const toCopies = (name: string, about: string, everyMs: number, act: Act, noticed = false): Fault => ({
  name,
  about,
  countsEffects: true,
  arrange(stage) {
    const { world } = stage;
    const targets = sharedTargets(world);
    const happen: Act = (...what) => {
      if (!noticed) world.fire(name);
      act(...what);
    };
    stage.nowAndThen(everyMs, (chance) => {
      const target = chance.pick(targets);
      happen(stage, target, chance.pick(target.copies), chance);
    });
    // Most dangerous is what happens to a copy that has a lease.
    world.listeners.push((fact) => {
      if (fact.type !== 'node.lease.granted' || world.clock.nowMs >= stage.endMs) return;
      const target = targets.find(({ name }) => name === fact.node);
      if (target === undefined || !stage.chance.flip(0.3)) return;
      const copy = target.copies.find(({ isLeading }) => isLeading);
      stage.occur((chance) => happen(stage, target, copy ?? chance.pick(target.copies), chance));
    });
  },
});

export const pausedCopies = toCopies(
  'paused-copies',
  'copies of the applier of a target are paused in any step, and continue after another one took over',
  20_000,
  (_stage, _target, copy, chance) => {
    const ms = chance.next() * chance.pick(SOME_MS);
    strike(copy, chance, () => copy.pause(ms));
  },
  true,
);

export const killedCopies = toCopies(
  'killed-copies',
  'copies of the applier of a target die in any step, and start again',
  30_000,
  ({ world }, _target, copy, chance) => {
    const againMs = chance.next() * chance.pick([1_000, 30_000, 200_000]);
    strike(copy, chance, () => {
      copy.kill();
      world.clock.after(againMs, () => copy.start());
    });
  },
);

export const cutOffCopies = toCopies(
  'cut-off-copies',
  'copies of the applier of a target lose the server in any step, mostly in the middle of a lease',
  25_000,
  ({ world }, target, copy, chance) => {
    const ms = chance.next() * chance.pick(SOME_MS);
    strike(copy, chance, () => {
      target.cutOff(copy);
      world.clock.after(ms, () => target.connect(copy));
    });
  },
);

export const twoOwners = toCopies(
  'two-owners',
  'two copies of the applier of a target believe that they own it',
  25_000,
  ({ world }, _target, copy, chance) => {
    copy.stubbornUntilMs = world.clock.nowMs + chance.next() * chance.pick(SOME_MS);
    if (copy.alive) copy.lead();
  },
  true,
);

export const movedTargets = toCopies(
  'moved-targets',
  'a target gets to another copy of its applier, in the middle of a lease too',
  30_000,
  (_stage, target) => target.moveOn(),
);

export const shakyTargets = toCopies(
  'shaky-targets',
  'targets that copies of an applier share do not answer for a while, or refuse to be written',
  40_000,
  ({ world }, target, _copy, chance) => {
    const worse = chance.flip(0.5) ? { gone: true } : { readOnly: ['/etc/b', '/etc/app'] };
    world.clock.after(chance.next() * 1_000, () => {
      target.trouble = { ...target.trouble, ...worse };
      target.disturbed();
    });
    world.clock.after(1_000 + chance.next() * chance.pick(SOME_MS), () => {
      target.answer();
      target.trouble = { ...target.trouble, readOnly: [] };
    });
  },
);

/** Requests about journals take seconds, or are lost, or their answers are. */
export const laggingJournals: Fault = {
  name: 'lagging-journals',
  about: 'requests about the journals of targets are slow, or are lost, or their answers are',
  countsEffects: true,
  arrange({ world, chance }) {
    sharedTargets(world);
    world.conditions.journalLateMs = chance.pick([500, 4_000, 9_000]);
    world.conditions.journalLost = chance.pick([0.02, 0.1]);
  },
};

export const lateCalls: Fault = {
  name: 'late-calls',
  about: 'calls to targets take as long as they may, and some have no answer in time',
  countsEffects: true,
  arrange({ world, chance }) {
    sharedTargets(world);
    world.conditions.callLate = chance.pick([0.1, 0.4]);
  },
};

/** Everything that can happen to those who share a target. */
const PARTS = [
  pausedCopies,
  killedCopies,
  cutOffCopies,
  twoOwners,
  movedTargets,
  shakyTargets,
  laggingJournals,
  lateCalls,
];

export const lostOwners: Fault = {
  name: 'lost-owners',
  about: 'targets elsewhere, whose copies of appliers are paused, killed, cut off, slow, or two owners',
  parts: PARTS,
  arrange: (stage) => {
    for (const part of PARTS) if (stage.chance.flip(0.6)) part.arrange(stage);
  },
};

/** Two targets, the same for all of these faults. */
function sharedTargets(world: World): readonly SimTarget[] {
  const known = [...world.nodes.values()].filter((node) => node instanceof SimTarget);
  if (known.length > 0) return known;
  return [2, 3].map((copies, i) =>
    world.addTarget(`t${i}.dc1`, { role: i === 0 ? 'edge' : 'core', zone: 'a' }, copies),
  );
}
