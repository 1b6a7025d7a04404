import { ClusterApi } from '#libs/kube/lean';
import type { Logger } from '#libs/process';
import type { Action } from '#libs/contracts';
import type { Refusal } from '../../core/index.js';
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
import { ApplySetParent } from './apply-set.js';
import { otherCluster } from './cluster-owner.js';
import { ClusterBackend } from './cluster-backend.js';
import { askOwner, askReady, ClusterCalls } from './cluster-calls.js';
import { CLUSTER_KINDS, FLUX_SYNC, KUBE_OBJECTS } from './cluster-kinds.js';
import { ClusterObjects } from './cluster-objects.js';
import { ObjectWatches } from './object-watches.js';

/** One Kubernetes cluster. */
export interface Cluster {
  /** The name of its node. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The content of a kubeconfig. It must not refer to commands or files. */
  readonly kubeconfig: string;
  /** Why the kubeconfig must not be used. The cluster then does not answer, and this is the reason. */
  readonly problem?: string | undefined;
}

/** A cluster as a target of an applier. */
export function clusterTarget({ name, labels, kubeconfig, problem }: Cluster, timing: Timing): Target {
  return {
    node: name,
    labels,
    settings: problem === undefined ? kubeconfig : `not usable: ${problem}`,
    capabilities: CLUSTER_CAPABILITIES,
    kinds: CLUSTER_KINDS,
    open: (storage, onChange, onDrift) => open({ name, kubeconfig, problem, timing, storage, onChange, onDrift }),
  };
}

/** What a node announces that is a cluster. */
export const CLUSTER_CAPABILITIES: readonly string[] = [
  `kind:${KUBE_OBJECTS}`,
  `kind:${FLUX_SYNC}`,
  'kind:Probe',
  'probe:kube',
];

/** For all clusters of this process. */
const EXPRESSIONS = new Expressions();

interface Opening {
  readonly name: string;
  readonly kubeconfig: string;
  readonly problem: string | undefined;
  readonly timing: Timing;
  readonly storage: TargetStorage;
  readonly onChange: OnReachChange;
  readonly onDrift: () => void;
}

async function open(opening: Opening): Promise<OpenTarget> {
  const { name, timing, storage, onChange, onDrift } = opening;
  const { clock, checkMs } = timing;
  const api = await apiOf(opening);
  const ending = new AbortController();
  const ask = typeof api === 'string' ? () => Promise.reject(new UnreachableError(api)) : askOwn(api, name, storage);
  const reach = new Reach({ ask, onChange, everyMs: checkMs });
  // It never answers. What was begun there ends now, with this reason.
  if (typeof api === 'string') await reach.look();
  const usable = typeof api === 'string' ? undefined : api;
  const calls = new ClusterCalls(usable, reach, storage);
  const watches = new ObjectWatches(usable ?? { follow: () => () => undefined }, onDrift);
  const objects = new ClusterObjects(calls, watches);
  const backend = new ClusterBackend(objects, watches, new ApplySetParent(calls, name));
  const probes = new TargetProbes(reach, clock, ending.signal, { kube: objects, expressions: EXPRESSIONS });
  const backends = new Map(CLUSTER_KINDS.order.map((kind) => [kind, backend]));
  return {
    reach,
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
      watches.stop();
      await usable?.close();
    },
  };
}

/** The API of the cluster, or why the kubeconfig cannot be used. */
async function apiOf({ name, kubeconfig, problem, timing: { logger } }: Opening): Promise<ClusterApi | string> {
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
  const hasObjects = Object.keys(journal.originals).length > 0;
  let isKnown = !hasObjects && journal.work === undefined;
  return async () => {
    await askReady(api);
    if (isKnown) return;
    if (!(await askOwner(api, node)) && hasObjects) throw new UnreachableError(otherCluster(node));
    isKnown = true;
  };
}

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
