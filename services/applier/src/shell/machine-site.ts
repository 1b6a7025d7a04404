import type { Log } from '../core/index.js';
import type { BusPort } from './bus-port.js';
import { Downloads } from './downloads.js';
import type { Guard } from './guard/guard.js';
import { Actor } from './host/actor.js';
import type { Backend, Clock, Storage, Surroundings } from './ports.js';
import { checkProbe, runProbes } from './probes/run-probes.js';
import { ResourceSteps } from './resource-steps.js';
import type { Site } from './site.js';

/** What the applier of this machine uses. */
export interface Machine {
  readonly storage: Storage;
  readonly backends: ReadonlyMap<string, Backend>;
  readonly surroundings: Surroundings;
  readonly guard: Guard;
  readonly bus: BusPort;
  readonly clock: Clock;
  readonly log: Log;
}

/** The machine that the applier runs on. */
export function machineSite({ storage, backends, surroundings, guard, bus, clock, log }: Machine): Site {
  const { aliases, fileSystems, host } = surroundings;
  const actor = new Actor(host);
  const resources = new ResourceSteps(
    storage,
    backends,
    {
      fileSystems,
      movedPath: (path) => aliases.moved(path),
      checkProbe: (entry) => checkProbe(entry, surroundings),
    },
    clock,
  );
  return {
    resources,
    guard,
    contents: new Downloads(bus, surroundings, log, (entry) => resources.isNeeded(entry)),
    refusals: (actions, config, leftMs) => actor.refusals(actions, config, leftMs),
    idleUnits: (actions, entries, leftMs) => actor.idleUnits(actions, entries, leftMs),
    resetFailed: (units) => actor.resetFailed(units),
    act: (action, items, timeoutMs) => actor.act(action, items, timeoutMs),
    readUnit: (unit, leftMs) => actor.readUnit(unit, leftMs),
    runProbes: (probes, untilMs) => runProbes(probes, surroundings, untilMs, clock),
    settled: async (timeoutMs) => host.systemd?.settled(timeoutMs),
  };
}
