import type { Action, Config, ConfigEntry } from '#libs/contracts';
import type { Item, ProbeResult, Refusal } from '../core/index.js';
import type { ContentFetches } from './downloads.js';
import type { Guard } from './guard/guard.js';
import type { ResourceSteps } from './resource-steps.js';

/** What an applier works on: this machine, or a target elsewhere. Whatever it does may be repeated. */
export interface Site {
  readonly resources: ResourceSteps;
  readonly contents: ContentFetches;
  /** What rolls back if this process hangs or is gone. */
  readonly guard: Guard;
  /** Why an action cannot be taken here. Changes nothing. */
  refusals(actions: readonly Action[], config: Config, leftMs: () => number): Promise<readonly Refusal[]>;
  /** The units of these actions and entries that neither run nor have failed. */
  idleUnits(
    actions: readonly Action[],
    entries: readonly ConfigEntry[],
    leftMs: () => number,
  ): Promise<readonly string[]>;
  /** Lets the service manager forget that these units have failed. */
  resetFailed(units: readonly string[]): Promise<void>;
  /** Takes one action, after these items were applied. Throws if it fails or the time is over. */
  act(action: Action, items: readonly Item[], timeoutMs: number): Promise<void>;
  /** Throws if the unit has failed. */
  readUnit(unit: string, leftMs: number): Promise<void>;
  /** Runs all probes. They end by `untilMs`, which may be Infinity. */
  runProbes(probes: readonly ConfigEntry[], untilMs: number): Promise<readonly ProbeResult[]>;
  /** Resolves when everything that starts with it has started, or the time is over. */
  settled(timeoutMs: number): Promise<void>;
}
