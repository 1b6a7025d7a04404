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
import { ApplySetParent } from './apply-set.js';
import { ClusterBackend } from './cluster-backend.js';
import { askReady, ClusterCalls } from './cluster-calls.js';
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
}

/** A cluster as a target of an applier. */
export function clusterTarget({ name, labels, kubeconfig }: Cluster, timing: Timing): Target {
  return {
    node: name,
    labels,
    settings: kubeconfig,
    capabilities: CLUSTER_CAPABILITIES,
    kinds: CLUSTER_KINDS,
    open: (storage, onChange, onDrift) => open({ name, kubeconfig, timing, storage, onChange, onDrift }),
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
  readonly timing: Timing;
  readonly storage: TargetStorage;
  readonly onChange: OnReachChange;
  readonly onDrift: () => void;
}

async function open({ name, kubeconfig, timing, storage, onChange, onDrift }: Opening): Promise<OpenTarget> {
  const { clock, checkMs, logger } = timing;
  const log = logger === undefined ? {} : { logger: named(logger, name) };
  const api = await ClusterApi.open({ kubeconfig, timeoutMs: CALL_TIMEOUT_MS, ...log });
  const ending = new AbortController();
  const reach = new Reach({ ask: () => askReady(api), onChange, everyMs: checkMs });
  const calls = new ClusterCalls(api, reach, storage);
  const watches = new ObjectWatches(api, onDrift);
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
      await api.close();
    },
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
