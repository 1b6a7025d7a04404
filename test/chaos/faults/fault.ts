import { until } from '#libs/testing';
import type { Chance } from '../../simulation/world/chance.js';
import { stateOf } from '../journals.js';
import { DRAINER, type Shape } from '../shape.js';
import type { Stage } from '../stage.js';

/** One fault in a schedule. */
export interface ScheduledFault {
  readonly fault: string;
  /** A process, or a state of a journal. Empty if there is only one target. */
  readonly target: string;
  readonly forMs: number;
}

/** One way to disturb real processes: its parameters are random, and it acts on the stage until it is over. */
export interface Fault {
  readonly name: string;
  plan(chance: Chance, shape: Shape): Omit<ScheduledFault, 'fault'>;
  run(stage: Stage, scheduled: ScheduledFault): Promise<void>;
}

/** kill -9, and a restart after a while, unless something else killed or restarted the process meanwhile. */
export async function killFor(stage: Stage, names: readonly string[], forMs: number): Promise<void> {
  const { processes } = stage.fleet;
  const running = names.filter((name) => processes.isRunning(name));
  await Promise.all(running.map((name) => processes.kill(name)));
  await stage.pause(forMs);
  for (const name of running) startAgain(stage, name);
}

/** Starts a service, a group of appliers or the drainer if it does not run. */
export function startAgain(stage: Stage, name: string): void {
  const { fleet } = stage;
  if (fleet.processes.isRunning(name)) return;
  if (name === DRAINER) return stage.startDrainer();
  if (name.startsWith('appliers')) fleet.startAppliers(name);
  else fleet.startService(name);
}

/** Afterwards, gives up: perhaps no rollout leads to the state. */
const WATCH_MS = 5_000;

/** The process of the first node whose journal reaches a state. Undefined if none reaches it in time. */
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
