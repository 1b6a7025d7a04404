import { FAULTS } from './faults/index.js';
import { newOracles } from './oracles/index.js';
import { letGo, people } from './people.js';
import { World, type Mutant } from './world.js';

export interface Outcome {
  readonly seed: number;
  readonly trace: readonly string[];
  readonly facts: number;
  readonly failure: string | undefined;
}

const BUSY_MS = 20 * 60_000;
/** Long enough for the longest distance between two tries, several times. */
const QUIET_MS = 5 * 3_600_000;

/** One run: a fleet, people and faults from one seed; then calm; then everything must have come to its end. */
export function runSeed(seed: number, options: { readonly trace?: boolean; readonly mutant?: Mutant } = {}): Outcome {
  const world = new World(seed, newOracles(), 2, options.trace === true, options.mutant);
  const failure = failureOf(world);
  return { seed, trace: world.lines, facts: world.bus.last, failure };
}

function failureOf(world: World): string | undefined {
  try {
    runWorld(world);
    return undefined;
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}${error.name === 'Violation' ? '' : `\n${error.stack ?? ''}`}` : String(error);
    world.trace(text);
    return text;
  }
}

function runWorld(world: World): void {
  const { chance } = world;
  const faults = FAULTS.filter(() => chance.happens(0.4));
  world.trace(`seed ${world.seed} with ${faults.map((fault) => fault.name).join(', ') || 'no faults'}`);
  for (let i = 0; i < chance.whole(3, 7); i++) world.addNode(`n${i}.dc1`, { role: chance.pick(['edge', 'edge', 'core']), zone: chance.pick(['a', 'b']) }, chance.happens(0.3));
  elect(world);
  people(world, BUSY_MS);
  for (const fault of faults) fault.arrange(world, BUSY_MS);
  world.run(BUSY_MS);
  calm(world);
  world.run(BUSY_MS + 60_000);
  letGo(world);
  world.run(BUSY_MS + QUIET_MS);
  world.observe((oracle) => oracle.atEnd?.(world));
}

/** Somebody leads again soon after a leader is gone. */
function elect(world: World): void {
  for (const name of new Set(world.copies.map((copy) => copy.kind.core.name))) {
    if (world.leader(name) === undefined) world.serving(name)[0]?.lead();
  }
  world.clock.after(5_000, () => elect(world));
}

function calm(world: World): void {
  Object.assign(world.weather, { reportLost: 0, reportDoubled: 0, reportLate: 0, answerLost: 0, appendLost: 0, pushLost: 0, lag: 0, delayMs: 3 });
  for (const copy of world.copies) {
    copy.connected = true;
    if (!copy.alive) copy.start();
  }
  for (const node of world.nodes.values()) {
    node.reconnect();
    if (!node.alive) node.start();
  }
  world.trace('calm');
}
