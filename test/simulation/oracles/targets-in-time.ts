import type { SimTarget } from '../world/sim-target.js';
import { Violation, type Oracle, type World } from '../world/world.js';
import { filesOf } from './whole-files.js';

/**
 * How long it takes after the deadline until another copy has noticed that nobody leads, has taken over, has waited for
 * late calls, and has rolled back, with the slowest calls and steps.
 */
const ROLLBACK_MS = 240_000;

/**
 * I4 for targets elsewhere: what was not confirmed is on a target no longer than its lease and a rollback take, if one
 * copy of its applier can work on it undisturbed for so long.
 */
export function targetsInTime(): Oracle {
  /** By the clock of the world. */
  const deadlines = new Map<string, number>();
  const look = (world: World, target: SimTarget): void => {
    const { nowMs } = world.clock;
    const { ableSinceMs, journal } = target;
    if (ableSinceMs === undefined) return;
    const byMs = Math.max(ableSinceMs, deadlines.get(target.name) ?? 0) + ROLLBACK_MS;
    if (nowMs <= byMs) return;
    const [found, expected] = [target.disk.files, filesOf(world, target, journal.inForce)].map((files) =>
      JSON.stringify([...files].sort()),
    );
    if (found !== expected)
      throw new Violation(`${target.name} still has ${found}, which nobody confirmed, instead of ${expected}`);
  };
  return {
    name: 'targets in time',
    onOwned(world, target, { journal: { work } }) {
      if (work === undefined) return;
      const leftMs = work.readMs + work.applyMs - target.bootMs;
      deadlines.set(target.name, world.clock.nowMs + leftMs);
    },
    onTarget: look,
  };
}
