import { ClusterApi } from '#libs/kube/lean';
import type { Logger } from '#libs/process';
import { READS_OBJECTS, type Action } from '#libs/contracts';
import type { Kinds, Refusal } from '../../core/index.js';
import { Expressions } from '../probes/expressions.js';
import { NO_GUARD } from '../guard/guard.js';
import type { Timing } from '../functions/function-target.js';
import { ResourceSteps } from '../resource-steps.js';
import { NO_CONTENTS } from '../targets/no-contents.js';
import { Reach, type OnReachChange } from '../targets/reach.js';
import type { OpenTarget, Target } from '../targets/run-target.js';
import { TargetProbes } from '../targets/target-probes.js';
import { CALL_TIMEOUT_MS, type TargetStorage } from '../targets/target-storage.js';
import { UnreachableError } from '../ports.js';
import { BoundObjects, fromBoth, NO_HUB } from './bound-objects.js';
import { ApplySetParent, applySetOf, OWN_APPLY_SET, type ApplySet } from './apply-set.js';
import { otherCluster } from './cluster-owner.js';
import { ClusterBackend } from './cluster-backend.js';
import { askOwner, askReady, ClusterCalls } from './cluster-calls.js';
import { clusterKinds, FLUX_SYNC, KUBE_OBJECTS, placeOfKey, type OnHub, type Place } from './cluster-kinds.js';
import { ClusterObjects } from './cluster-objects.js';
import { ObjectWatches } from './object-watches.js';
import { PlacedBackend } from './placed-backend.js';

/** One Kubernetes cluster. */
export interface Cluster {
  /** The name of its node. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The content of a kubeconfig. It must not refer to commands or files. */
  readonly kubeconfig: string;
  /** Why the kubeconfig must not be used. The cluster then does not answer, and this is the reason. */
  readonly problem?: string | undefined;
  /** How the hub knows it where it was found; undefined if it is from a file. */
  readonly onHub?: OnHub;
}

/** The API server of a hub. All clusters that were found there share it. */
export interface Hub {
  readonly api: ClusterApi;
  readonly reach: Reach;
}

/** Asks the hub at intervals whether it answers. `onChange` is told when that changes. */
export const hubOf = (api: ClusterApi, everyMs: number, onChange: OnReachChange): Hub => ({
  api,
  reach: new Reach({ ask: () => askReady(api), onChange, everyMs }),
});

/** A cluster as a target of an applier. */
export function clusterTarget(cluster: Cluster, timing: Timing, hub?: Hub): Target {
  const { name, labels, kubeconfig, problem, onHub } = cluster;
  const kinds = clusterKinds(onHub);
  return {
    node: name,
    labels,
    settings: settingsOf(kubeconfig, problem, onHub),
    capabilities: hub === undefined ? CLUSTER_CAPABILITIES : [...CLUSTER_CAPABILITIES, 'placement:hub'],
    kinds,
    open: (storage, onChange, onDrift) => open({ cluster, hub, kinds, timing, storage, onChange, onDrift }),
  };
}

/** What a node announces that is a cluster. */
export const CLUSTER_CAPABILITIES: readonly string[] = [
  READS_OBJECTS,
  `kind:${KUBE_OBJECTS}`,
  `kind:${FLUX_SYNC}`,
  'kind:Probe',
  'probe:kube',
];

/** For all clusters of this process. */
const EXPRESSIONS = new Expressions();

interface Opening {
  readonly cluster: Cluster;
  readonly hub: Hub | undefined;
  readonly kinds: Kinds;
  readonly timing: Timing;
  readonly storage: TargetStorage;
  readonly onChange: OnReachChange;
  readonly onDrift: () => void;
}

async function open(opening: Opening): Promise<OpenTarget> {
  const { cluster, hub, kinds, timing, storage, onChange, onDrift } = opening;
  const { name, onHub } = cluster;
  const { clock, checkMs, hubObjects = NO_HUB } = timing;
  const api = await apiOf(opening);
  const ending = new AbortController();
  const ask = typeof api === 'string' ? () => Promise.reject(new UnreachableError(api)) : askOwn(api, name, storage);
  const reach = new Reach({ ask, onChange, everyMs: checkMs });
  // It never answers. What was begun there ends now, with this reason.
  if (typeof api === 'string') await reach.look();
  const usable = typeof api === 'string' ? undefined : api;
  const place = (where: Place, there: ClusterApi | undefined, calling: Reach, set: ApplySet): Placed => {
    const calls = new ClusterCalls(there, calling, storage);
    const watches = new ObjectWatches(there ?? { follow: () => () => undefined }, set, onDrift);
    const objects = new ClusterObjects(calls, watches, set, { clock });
    const parent = new ApplySetParent(calls, name, set);
    return { backend: new ClusterBackend(objects, watches, parent, kinds, where), objects, watches };
  };
  const own = place('cluster', usable, reach, OWN_APPLY_SET);
  const there =
    hub === undefined || onHub === undefined ? undefined : place('hub', hub.api, hub.reach, hubSetOf(onHub));
  const backend = new PlacedBackend(own.backend, there?.backend);
  const probes = new TargetProbes(reach, clock, ending.signal, { kube: own.objects, expressions: EXPRESSIONS });
  const backends = new Map(kinds.order.map((kind) => [kind, backend]));
  const bound = usable && boundIn(usable, new ClusterCalls(usable, reach, storage));
  return {
    reach,
    ...(bound === undefined ? {} : { objects: fromBoth(bound, hubObjects) }),
    site: {
      resources: new ResourceSteps(storage, backends, { checkProbe: (entry) => probes.check(entry) }, clock),
      contents: NO_CONTENTS,
      guard: NO_GUARD,
      refusals: (actions) => Promise.resolve(refusals(actions)),
      act: ({ kind }) => (FREE.includes(kind) ? Promise.resolve() : Promise.reject(new Error(cannot(kind)))),
      idleUnits: () => Promise.resolve([]),
      resetFailed: () => Promise.resolve(),
      readUnit: (unit) => Promise.reject(new Error(`a cluster has no unit ${unit}`)),
      runProbes: (all, untilMs) => probes.run(all, untilMs),
      settled: () => Promise.resolve(),
    },
    close: async () => {
      ending.abort();
      own.watches.stop();
      there?.watches.stop();
      await usable?.close();
    },
  };
}

/** The API of the cluster, or why the kubeconfig cannot be used. */
async function apiOf({ cluster, timing: { logger } }: Opening): Promise<ClusterApi | string> {
  const { name, kubeconfig, problem } = cluster;
  if (problem !== undefined) return problem;
  const log = logger === undefined ? {} : { logger: named(logger, name) };
  try {
    return await ClusterApi.open({ kubeconfig, timeoutMs: CALL_TIMEOUT_MS, ...log });
  } catch (error) {
    if (error instanceof Error && error.name === 'KubeConfigError') return error.message;
    throw error;
  }
}

/**
 * Asks whether the cluster is ready, and once, after it was opened, whether it is still the cluster that has what was
 * applied: the kubeconfig may have been replaced.
 */
function askOwn(api: ClusterApi, node: string, { journal }: TargetStorage): () => Promise<void> {
  const hasObjects = Object.keys(journal.originals).some((key) => placeOfKey(key) === 'cluster');
  let isKnown = !hasObjects && journal.work === undefined;
  return async () => {
    await askReady(api);
    if (isKnown) return;
    if (!(await askOwner(api, node)) && hasObjects) throw new UnreachableError(otherCluster(node));
    isKnown = true;
  };
}

function settingsOf(kubeconfig: string, problem: string | undefined, onHub: OnHub | undefined): string {
  if (problem !== undefined) return `not usable: ${problem}`;
  return onHub === undefined ? kubeconfig : JSON.stringify([kubeconfig, onHub]);
}

interface Placed {
  readonly backend: ClusterBackend;
  readonly objects: ClusterObjects;
  readonly watches: ObjectWatches;
}

/** Each cluster has its own set on the hub, in its namespace. */
const hubSetOf = ({ namespace, name, owner }: OnHub): ApplySet =>
  applySetOf({
    name: `sluice-applied.${name}`,
    namespace,
    within: namespace,
    metadata: { ownerReferences: [owner] },
  });

/** What bindings refer to in the cluster itself. */
const boundIn = (api: ClusterApi, calls: ClusterCalls): BoundObjects =>
  new BoundObjects({ api, call: (work) => calls.read(work), watch: 'object', user: OWN_USER });
const OWN_USER = 'the user of the kubeconfig of the cluster';

/** Each message says which cluster it is about. */
const named = (logger: Logger, node: string): Logger => ({
  debug: (fields, message) => logger.debug({ node, ...fields }, message),
  info: (fields, message) => logger.info({ node, ...fields }, message),
  warn: (fields, message) => logger.warn({ node, ...fields }, message),
  error: (fields, message) => logger.error({ node, ...fields }, message),
});

/** Actions that need nothing from the cluster. */
const FREE: readonly string[] = ['none', 'drain'];
const cannot = (kind: string): string => `action ${kind}: a cluster cannot do this`;

const refusals = (actions: readonly Action[]): readonly Refusal[] =>
  actions.filter(({ kind }) => !FREE.includes(kind)).map(({ kind }) => ({ fault: 'node', reason: cannot(kind) }));
