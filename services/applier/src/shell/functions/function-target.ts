import type { FleetClient } from '#libs/client';
import type { Action, Config } from '#libs/contracts';
import { functionKindOf } from '#libs/manifests/lean';
import type { Logger } from '#libs/process';
import type { Kinds } from '../../core/index.js';
import { NO_GUARD } from '../guard/guard.js';
import type { Clock } from '../ports.js';
import { ResourceSteps } from '../resource-steps.js';
import { NO_CONTENTS } from '../targets/no-contents.js';
import { Reach, type OnReachChange } from '../targets/reach.js';
import type { ObjectSource } from '../targets/binding-reader.js';
import type { OpenTarget, Target } from '../targets/run-target.js';
import { TargetProbes } from '../targets/target-probes.js';
import { CALL_TIMEOUT_MS, type TargetStorage } from '../targets/target-storage.js';
import { FUNCTION_CAPABILITIES, functionBackends } from './function-backend.js';
import { FunctionClient, SERVICES, type FunctionAddress, type FunctionAnswer, type Method } from './function-client.js';
import { FunctionServices } from './function-services.js';
import { FunctionStatus, whyModuleFails, type FunctionStatusReport } from './function-status.js';

/** One replica of a network function. */
export interface FunctionReplica extends Omit<FunctionAddress, 'callTimeoutMs'> {
  /** The name of its node. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Tells apart replicas that have one name, one after the other. */
  readonly instance?: string;
  /** Why it cannot be used now; undefined if it can. */
  readonly unavailable?: string | undefined;
}

export interface Timing {
  /** The time of the NATS server. */
  readonly clock: Clock;
  /** How often to ask whether it answers. */
  readonly checkMs: number;
  /** Shows what a target says about itself; left out if nobody looks. */
  readonly report?: ((node: string, status: FunctionStatusReport) => Promise<void>) | undefined;
  /** For what lasts and holds up no single change, such as a right that is missing. */
  readonly logger?: Logger;
  /** The objects of the hub that lists the clusters. */
  readonly hubObjects?: ObjectSource;
  /** A client of this Sluice. Only other fleets need it. */
  readonly hub?: FleetClient;
}

/** A replica as a target of an applier. */
export function functionTarget(replica: FunctionReplica, timing: Timing): Target {
  const { name, labels, unavailable, instance = '', ...address } = replica;
  return {
    node: name,
    labels,
    settings: JSON.stringify({ ...address, instance }),
    unavailable,
    capabilities: [...FUNCTION_CAPABILITIES, 'kind:Probe', 'probe:function'],
    kinds: KINDS,
    open: (storage, onChange) =>
      Promise.resolve(opened({ ...address, callTimeoutMs: CALL_TIMEOUT_MS }, storage, onChange, { ...timing, name })),
  };
}

function opened(
  address: FunctionAddress,
  storage: TargetStorage,
  onChange: OnReachChange,
  { clock, checkMs, report, name }: Timing & { readonly name: string },
): OpenTarget {
  const ending = new AbortController();
  const plain = new FunctionClient(address, ending.signal);
  const status = new FunctionStatus({
    client: plain,
    report: (found) => report?.(name, found) ?? Promise.resolve(),
    clock: () => performance.now(),
  });
  const ask = async (): Promise<void> => {
    await plain.call('GET', SERVICES);
    if (report !== undefined) void status.look();
  };
  const reach = new Reach({ ask, onChange, everyMs: checkMs });
  const client = new TargetClient(address, ending.signal, reach, storage);
  const services = new FunctionServices(client, ending.signal);
  const probes = new TargetProbes(reach, clock, ending.signal, {
    whyModuleFails: (module, timeoutMs) => whyModuleFails(client, module, timeoutMs),
  });
  const backends = new Map(functionBackends(client, { clock }).map((backend) => [backend.kind, backend]));
  return {
    reach,
    site: {
      resources: new ResourceSteps(storage, backends, { checkProbe: (entry) => probes.check(entry) }, clock),
      contents: NO_CONTENTS,
      guard: NO_GUARD,
      idleUnits: () => Promise.resolve([]),
      resetFailed: () => Promise.resolve(),
      refusals: (actions) => services.refusals(actions),
      act: (action, _items, timeoutMs) => services.act(action, timeoutMs),
      readUnit: (unit) => services.readUnit(unit),
      runProbes: (all, untilMs) => probes.run(all, untilMs),
      settled: () => Promise.resolve(),
    },
    interrupt: () => ending.abort(),
    close: async () => {
      ending.abort();
      await Promise.all([plain.close(), client.close()]);
    },
  };
}

/** Fails at once while the replica is known not to answer, and writes only while this copy owns it. */
class TargetClient extends FunctionClient {
  constructor(
    address: FunctionAddress,
    ending: AbortSignal,
    private readonly reach: Reach,
    private readonly storage: TargetStorage,
  ) {
    super(address, ending);
  }

  /** A write ends before another copy may write. An action may take longer: it changes no object. */
  override async call(
    method: Method,
    path: string,
    body?: unknown,
    timeoutMs = this.callTimeoutMs,
  ): Promise<FunctionAnswer> {
    const leftMs = method === 'GET' ? Infinity : await this.storage.fence();
    const mayTakeMs = timeoutMs > this.callTimeoutMs ? timeoutMs : Math.min(timeoutMs, leftMs);
    return this.reach.call(() => super.call(method, path, body, mayTakeMs));
  }
}

/** For what backends know without a replica. */
const ALL = functionBackends(
  new FunctionClient({ baseUrl: 'http://unused', user: '', password: '', callTimeoutMs: 1 }),
);

/** The services that read objects of this config. */
function servicesOf({ fragments }: Config): readonly Action[] {
  const after = fragments.flatMap(({ kind }) => functionKindOf(kind)?.after ?? []);
  const actions = new Map(after.map(({ action, service }) => [service, { kind: action, unit: service }]));
  return [...actions.values()];
}

const KINDS: Kinds = {
  order: ALL.map(({ kind }) => kind),
  entries: (config) => config.fragments,
  // A replica that restarts has lost all of them.
  forgotten: ALL.map(({ kind }) => kind),
  actionsAfterLoss: servicesOf,
  snapshots: [],
  independent: [],
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources: (entry) => ALL.find(({ kind }) => kind === entry.kind)?.resources(entry) ?? [],
};
