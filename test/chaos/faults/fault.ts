import { until } from '#libs/testing';
import type { Chance } from '../../simulation/world/chance.js';
import { stateOf } from '../journals.js';
import { DRAINER, type Shape } from '../shape.js';
import type { Stage } from '../stage.js';

/** One fault as it stands in a schedule. */
export interface Blow {
  readonly fault: string;
  /** A process, a state of a journal, or nothing where there is one only. */
  readonly target: string;
  readonly forMs: number;
}

/** One way to hurt real processes: drawn from chance alone, and carried out on the stage until it is over. */
export interface Fault {
  readonly name: string;
  plan(chance: Chance, shape: Shape): Omit<Blow, 'fault'>;
  strike(stage: Stage, blow: Blow): Promise<void>;
}

/** kill -9, and a start after a while, unless somebody else did either meanwhile. */
export async function killFor(stage: Stage, names: readonly string[], forMs: number): Promise<void> {
  const { processes } = stage.fleet;
  const running = names.filter((name) => processes.isRunning(name));
  await Promise.all(running.map((name) => processes.kill(name)));
  await stage.pause(forMs);
  for (const name of running) startAgain(stage, name);
}

/** Starts a service, a group of appliers or the drainer, if it does not run. */
export function startAgain(stage: Stage, name: string): void {
  const { fleet } = stage;
  if (fleet.processes.isRunning(name)) return;
  if (name === DRAINER) return stage.startDrainer();
  if (name.startsWith('appliers')) fleet.startAppliers(name);
  else fleet.startService(name);
}

/** A state of a journal may not come at all while nothing of that kind is rolled out. */
const WATCH_MS = 5_000;

/** The process of the first node that is seen in a state of its journal; undefined when none comes into it soon. */
export async function groupIn(stage: Stage, state: string): Promise<string | undefined> {
  const { fleet, note } = stage;
  const isAlive = (node: string): boolean => fleet.processes.isRunning(stage.groupOf(node));
  const found = await until(
    () => fleet.nodes.find((node) => isAlive(node) && stateOf(fleet, node) === state),
    state,
    WATCH_MS,
  ).catch(() => undefined);
  if (found === undefined) note(`no node was ${state}`);
  return found === undefined ? undefined : stage.groupOf(found);
}

export async function freezeFor(stage: Stage, name: string, forMs: number): Promise<void> {
  const { processes } = stage.fleet;
  if (!processes.isRunning(name)) return;
  processes.freeze(name);
  await stage.pause(forMs);
  processes.thaw(name);
}
