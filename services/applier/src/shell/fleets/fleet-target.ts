import type { Kinds } from '../../core/index.js';
import type { Timing } from '../functions/function-target.js';
import { NO_GUARD } from '../guard/guard.js';
import { UnreachableError } from '../ports.js';
import { ResourceSteps } from '../resource-steps.js';
import { NO_CONTENTS } from '../targets/no-contents.js';
import { Reach, type OnReachChange } from '../targets/reach.js';
import type { OpenTarget, Target } from '../targets/run-target.js';
import { TargetProbes } from '../targets/target-probes.js';
import type { TargetStorage } from '../targets/target-storage.js';
import { admit } from './admission.js';
import {
  FLEET_KIND,
  FLEET_ORDER,
  FleetBackend,
  fleetEntries,
  FleetPublication,
  fleetResources,
} from './fleet-backend.js';
import { FleetChanges } from './fleet-changes.js';
import { FleetLink, type FleetAddress, type FleetCalls } from './fleet-link.js';
import { whyNotDone } from './fleet-progress.js';
import { KnownBadExchange } from './known-bad-exchange.js';

/** Another fleet, with a Sluice of its own. */
export interface OtherFleet extends FleetAddress {
  /** The name of its node. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A rollout in another fleet is also rolled back node by node, so a step of a rollback may take long. */
const ROLLBACK_STEP_MS = 24 * 3_600_000;

/** Another fleet as a target of an applier. */
export function fleetTarget({ name, labels, ...address }: OtherFleet, timing: Timing): Target {
  return {
    node: name,
    labels,
    settings: JSON.stringify(address),
    capabilities: [`kind:${FLEET_KIND}`, 'kind:Probe'],
    kinds: KINDS,
    rollbackStepMs: ROLLBACK_STEP_MS,
    // What is published has an id, and an open change is followed.
    isRepeatable: true,
    open: (storage, onChange) => Promise.resolve(opened({ name, address }, storage, onChange, timing)),
  };
}

interface Opening {
  readonly name: string;
  readonly address: FleetAddress;
}

function opened(
  { name, address }: Opening,
  storage: TargetStorage,
  onChange: OnReachChange,
  { clock, checkMs, hub }: Timing,
): OpenTarget {
  const ending = new AbortController();
  const { source } = address;
  const link = new FleetLink(address, async (fleet) => {
    if (hub !== undefined) await admit(fleet, { name, source, hub });
  });
  const exchange = hub === undefined ? undefined : new KnownBadExchange({ fleet: name, link, hub });
  const ask = async (): Promise<void> => {
    await link.ask();
    void exchange?.run();
  };
  const reach = new Reach({ ask, onChange, everyMs: checkMs });
  const calls: FleetCalls = { source: link.source, call: (work) => reach.call(() => link.call(work)) };
  const changes = new FleetChanges({
    link: calls,
    lease: () => storage.lease,
    fence: async () => void (await storage.fence()),
    clock,
    sleep: (ms) => sleep(ms, ending.signal),
  });
  const probes = new TargetProbes(reach, clock, ending.signal);
  const backends = [new FleetBackend(calls, changes), new FleetPublication(changes)];
  return {
    reach,
    site: {
      resources: new ResourceSteps(
        storage,
        new Map(backends.map((backend) => [backend.kind, backend])),
        { checkProbe: (entry) => probes.check(entry) },
        clock,
      ),
      contents: NO_CONTENTS,
      guard: NO_GUARD,
      refusals: () => Promise.resolve([]),
      act: () => Promise.resolve(),
      readUnit: () => Promise.resolve(),
      idleUnits: () => Promise.resolve([]),
      resetFailed: () => Promise.resolve(),
      runProbes: (all, untilMs) => probes.run(all, untilMs),
      settled: () => Promise.resolve(),
    },
    explain: async () => {
      const { current } = changes;
      return current === undefined ? '' : link.call((fleet) => whyNotDone(fleet, current));
    },
    interrupt: () => ending.abort(),
    close: async () => {
      ending.abort();
      await link.close();
    },
  };
}

const KINDS: Kinds = {
  order: FLEET_ORDER,
  entries: fleetEntries,
  forgotten: [],
  snapshots: [],
  independent: [],
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources: fleetResources,
};

/** Rejects when the applier is stopped: the next owner of the target continues. */
function sleep(ms: number, ending: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(new UnreachableError('the applier is stopping'));
    };
    const timer = setTimeout(() => {
      ending.removeEventListener('abort', end);
      resolve();
    }, ms);
    if (ending.aborted) end();
    else ending.addEventListener('abort', end, { once: true });
  });
}
