import { Chance } from '../world/chance.js';
import { ACTORS, planOf, type Plan } from './plan.js';
import { Stage } from '../faults/fault.js';
import { newOracles } from '../oracles/index.js';
import { beginning, resumeAll, publish } from '../people/index.js';
import { NO_TROUBLE } from '../world/performer.js';
import type { Mutant } from '../oracles/mutants.js';
import { keepUp } from '../world/upkeep.js';
import { NORMAL_CONDITIONS } from '../world/surroundings.js';
import { SimTarget } from '../world/sim-target.js';
import { Violation, World } from '../world/world.js';

export interface Outcome {
  readonly seed: number;
  readonly trace: readonly string[];
  readonly facts: number;
  readonly failure: string | undefined;
  /** When it failed, by the simulated clock. */
  readonly endedMs: number;
  /** How often each fault took effect. */
  readonly fired: ReadonlyMap<string, number>;
  /** The occurrences of each actor, by number. */
  readonly occurrences: ReadonlyMap<string, readonly number[]>;
}

export interface RunOptions {
  readonly trace?: boolean;
  readonly mutant?: Mutant;
}

/** Several times the longest interval between two tries. */
const QUIET_MS = 5 * 3_600_000;
/**
 * If nothing was appended for this long and everything is as it should be, it mostly stays so. Patient runs also see
 * what happens later.
 */
const REST_MS = 8 * 60_000;

export const runSeed = (seed: number, options: RunOptions = {}): Outcome => runPlan(planOf(seed), options);

/** One run: a fleet with people and faults as planned, then without faults, until everything has ended. */
export function runPlan(plan: Plan, options: RunOptions = {}): Outcome {
  const world = new World(
    plan.seed,
    newOracles(),
    plan.copies,
    options.trace === true,
    options.mutant,
    plan.kubernetes,
  );
  const failure = failureOf(world, plan);
  return {
    seed: plan.seed,
    trace: world.lines,
    facts: world.bus.last,
    failure,
    endedMs: world.clock.nowMs,
    fired: world.fired,
    occurrences: world.occurrences,
  };
}

function failureOf(world: World, plan: Plan): string | undefined {
  try {
    runWorld(world, plan);
    return undefined;
  } catch (error) {
    const text =
      error instanceof Error
        ? `${error.name}: ${error.message}${error.name === 'Violation' ? '' : `\n${error.stack ?? ''}`}`
        : String(error);
    world.trace(() => text);
    return text;
  }
}

function runWorld(world: World, plan: Plan): void {
  const busyMs = plan.minutes * 60_000;
  world.trace(() => `seed ${plan.seed} with ${[...plan.actors.keys()].join(', ') || 'nobody'}`);
  addNodes(world, plan.nodes);
  elect(world);
  keepUp(world);
  publish(world, beginning(new Chance(plan.seed, 'beginning'), plan.kubernetes));
  for (const actor of ACTORS) {
    if (plan.actors.has(actor.name)) actor.arrange(new Stage(world, actor, busyMs, plan.actors.get(actor.name)));
  }
  world.run(busyMs);
  endFaults(world);
  world.run(busyMs + 60_000);
  resumeAll(world, plan.seed % 2 === 0);
  if (!comesToRest(world, busyMs + QUIET_MS, plan.patient)) world.observe((oracle) => oracle.atEnd?.(world));
}

function addNodes(world: World, nodes: number): void {
  for (let i = 0; i < nodes; i++) {
    const chance = new Chance(world.seed, `node ${i}`);
    const labels = {
      role: chance.pick(['edge', 'edge', 'core']),
      zone: chance.pick(['a', 'b']),
      mood: chance.pick(['ok', 'ok', 'sad']),
    };
    world.addNode(`n${i}.dc1`, labels, chance.flip(0.3));
  }
}

/** Elects another leader soon after a leader is gone. */
function elect(world: World): void {
  for (const name of new Set(world.copies.map((copy) => copy.kind.core.name))) {
    if (!world.serving(name).some((copy) => copy.elected)) world.serving(name)[0]?.lead();
  }
  world.clock.after(5_000, () => elect(world));
}

/** Ends all faults. */
function endFaults(world: World): void {
  Object.assign(world.conditions, NORMAL_CONDITIONS);
  for (const copy of world.copies) {
    copy.reconnect();
    if (!copy.alive) copy.start();
  }
  for (const node of world.nodes.values()) {
    node.answer();
    node.trouble = NO_TROUBLE;
    node.reconnect();
    if (node instanceof SimTarget) node.calm();
    else if (!node.alive) node.start();
  }
  world.cluster?.undoInterference(world.nodes.keys());
  world.trace(() => 'calm');
}

/**
 * Advances the time until everything is as it should be and nothing is in progress. Gives up at `endMs`, which counts
 * as a failure.
 */
function comesToRest(world: World, endMs: number, patient: boolean): boolean {
  const { clock } = world;
  if (patient) world.run(endMs);
  for (let lookedMs = clock.nowMs; clock.nowMs < endMs;) {
    const restedMs = Math.max(world.appendedMs, lookedMs) + REST_MS;
    if (clock.nowMs < restedMs) world.run(Math.min(endMs, restedMs));
    else if (isSettled(world)) return true;
    else lookedMs = clock.nowMs;
  }
  return false;
}

function isSettled(world: World): boolean {
  try {
    world.observe((oracle) => oracle.atEnd?.(world));
    return true;
  } catch (error) {
    if (error instanceof Violation) return false;
    throw error;
  }
}
