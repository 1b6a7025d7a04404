import { groupKindOf } from '#libs/manifests/lean';

/** Whether an object is as its spec wants it, by the rules of kstatus (sigs.k8s.io/cli-utils). */
export interface ObjectStatus {
  readonly is: 'current' | 'in-progress' | 'failed' | 'terminating';
  /** For people. Empty if it is current. */
  readonly message: string;
  /** What is to blame if it has failed. Default: `node`. */
  readonly fault?: 'content' | 'node';
}

type Fields = Readonly<Record<string, unknown>>;
export interface Condition {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly observedGeneration?: unknown;
}

/** The object as the API server sends it. `nowMs` is only used for pods that cannot be scheduled. */
export function kstatus(object: Fields, nowMs: number): ObjectStatus {
  const metadata = fieldsOf(object['metadata']);
  const status = fieldsOf(object['status']);
  if (metadata['deletionTimestamp'] !== undefined) return { is: 'terminating', message: 'is being deleted' };
  const { observedGeneration } = status;
  if (observedGeneration !== undefined && observedGeneration !== metadata['generation'])
    return waits(
      `its controller has seen generation ${String(observedGeneration)} of ${String(metadata['generation'])}`,
    );
  const conditions = conditionsOf(status);
  for (const { type, status: value, message } of conditions) {
    if (type === 'Reconciling' && value === 'True') return waits(`Reconciling: ${String(message ?? '')}`);
    if (type === 'Stalled' && value === 'True') return fails(`Stalled: ${String(message ?? '')}`);
  }
  const rule = RULES[groupKindOf({ apiVersion: String(object['apiVersion']), kind: String(object['kind']) })];
  if (rule !== undefined) return rule({ object, spec: fieldsOf(object['spec']), status, conditions, nowMs });
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True') return CURRENT;
  return waits(`Ready=${String(ready.status)}: ${wordsOf(ready)}`);
}

const CURRENT: ObjectStatus = { is: 'current', message: '' };
const waits = (message: string): ObjectStatus => ({ is: 'in-progress', message });
const fails = (message: string): ObjectStatus => ({ is: 'failed', message });

interface Judged {
  readonly object: Fields;
  readonly spec: Fields;
  readonly status: Fields;
  readonly conditions: readonly Condition[];
  readonly nowMs: number;
}

const RULES: Readonly<Record<string, (judged: Judged) => ObjectStatus>> = {
  ConfigMap: () => CURRENT,
  Secret: () => CURRENT,
  'CronJob.batch': () => CURRENT,
  'PodDisruptionBudget.policy': () => CURRENT,
  'Deployment.apps': deployment,
  'ReplicaSet.apps': replicaSet,
  'StatefulSet.apps': statefulSet,
  'DaemonSet.apps': daemonSet,
  'Job.batch': job,
  Pod: pod,
  PersistentVolumeClaim: ({ status }) =>
    status['phase'] === 'Bound' ? CURRENT : waits(`is ${textOf(status['phase']) || 'not known yet'}, not Bound`),
  Service: ({ spec }) =>
    spec['type'] === 'LoadBalancer' && textOf(spec['clusterIP']) === '' ? waits('has no cluster IP yet') : CURRENT,
  'CustomResourceDefinition.apiextensions.k8s.io': definition,
};

const NO_DEADLINE = 2 ** 31 - 1;

function deployment({ spec, status, conditions }: Judged): ObjectStatus {
  const progressing = conditions.find(({ type }) => type === 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') return fails(wordsOf(progressing));
  const wanted = numberOf(spec['replicas'], 1);
  const [replicas, updated] = [numberOf(status['replicas']), numberOf(status['updatedReplicas'])];
  const [ready, available] = [numberOf(status['readyReplicas']), numberOf(status['availableReplicas'])];
  const why = conditions.find(({ type, status: value }) => type === 'Available' && value !== 'True');
  const because = why === undefined ? '' : ` (Available=${String(why.status)}: ${wordsOf(why)})`;
  if (wanted > replicas) return waits(`${replicas} of ${wanted} replicas exist${because}`);
  if (wanted > updated) return waits(`${updated} of ${wanted} replicas are updated${because}`);
  if (replicas > wanted) return waits(`${replicas - wanted} old replicas still exist${because}`);
  if (updated > available) return waits(`${available} of ${updated} replicas are available${because}`);
  if (wanted > ready) return waits(`${ready} of ${wanted} replicas are ready${because}`);
  const isDone = progressing?.status === 'True' && progressing.reason === 'NewReplicaSetAvailable';
  // Without a deadline, there is no such condition.
  if (!isDone && numberOf(spec['progressDeadlineSeconds'], NO_DEADLINE) !== NO_DEADLINE)
    return waits(`Progressing=${textOf(progressing?.status) || 'not set'}: ${wordsOf(progressing ?? {})}`);
  return isTrue(conditions, 'Available') ? CURRENT : waits(`is not available${because}`);
}

function replicaSet({ spec, status, conditions }: Judged): ObjectStatus {
  const failure = conditions.find(({ type, status: value }) => type === 'ReplicaFailure' && value === 'True');
  if (failure !== undefined) return waits(`ReplicaFailure: ${wordsOf(failure)}`);
  const wanted = numberOf(spec['replicas'], 1);
  for (const field of ['fullyLabeledReplicas', 'availableReplicas', 'readyReplicas'])
    if (wanted > numberOf(status[field])) return waits(`${field} is ${numberOf(status[field])} of ${wanted}`);
  const replicas = numberOf(status['replicas']);
  return replicas > wanted ? waits(`${replicas - wanted} old replicas still exist`) : CURRENT;
}

function statefulSet({ spec, status }: Judged): ObjectStatus {
  const strategy = fieldsOf(spec['updateStrategy']);
  if (strategy['type'] === 'OnDelete') return CURRENT;
  const wanted = numberOf(spec['replicas'], 1);
  const [replicas, ready] = [numberOf(status['replicas']), numberOf(status['readyReplicas'])];
  const [updated, current] = [numberOf(status['updatedReplicas']), numberOf(status['currentReplicas'])];
  if (wanted > replicas) return waits(`${replicas} of ${wanted} replicas exist`);
  if (wanted > ready) return waits(`${ready} of ${wanted} replicas are ready`);
  if (replicas > wanted) return waits(`${replicas - wanted} old replicas still exist`);
  const partition = numberOf(fieldsOf(strategy['rollingUpdate'])['partition'], -1);
  if (partition !== -1) {
    const part = wanted - partition;
    return updated < part ? waits(`${updated} of ${part} replicas are updated`) : CURRENT;
  }
  if (wanted > current) return waits(`${current} of ${wanted} replicas are current`);
  return status['currentRevision'] === status['updateRevision'] ? CURRENT : waits('its pods have another revision');
}

function daemonSet({ object, status }: Judged): ObjectStatus {
  if (fieldsOf(object['metadata'])['generation'] === undefined || status['observedGeneration'] === undefined)
    return waits('its controller has not seen it yet');
  const wanted = numberOf(status['desiredNumberScheduled'], -1);
  if (wanted === -1) return waits('its controller has not counted the nodes yet');
  for (const [field, word] of DAEMON_COUNTS) {
    const count = numberOf(status[field]);
    if (wanted > count) return waits(`${count} of ${wanted} pods are ${word}`);
  }
  return CURRENT;
}

const DAEMON_COUNTS = [
  ['currentNumberScheduled', 'scheduled'],
  ['updatedNumberScheduled', 'updated'],
  ['numberAvailable', 'available'],
  ['numberReady', 'ready'],
] as const;

function job({ status, conditions }: Judged): ObjectStatus {
  for (const condition of conditions) {
    if (condition.status !== 'True') continue;
    if (condition.type === 'Failed') return fails(wordsOf(condition));
    if (condition.type === 'Complete') return CURRENT;
  }
  return status['startTime'] === undefined ? waits('has not started') : CURRENT;
}

/** How long a new pod may wait for a place. */
const SCHEDULE_MS = 15_000;

function pod({ object, status, conditions, nowMs }: Judged): ObjectStatus {
  switch (status['phase']) {
    case 'Succeeded':
    // It will never run again, so there is nothing to wait for.
    case 'Failed':
      return CURRENT;
    case 'Running':
      if (isTrue(conditions, 'Ready')) return CURRENT;
      return crashLooping(status) ?? waits('runs, but is not ready');
    case 'Pending': {
      const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
      if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
        const sinceMs = nowMs - Date.parse(textOf(fieldsOf(object['metadata'])['creationTimestamp']));
        return (sinceMs > SCHEDULE_MS ? fails : waits)(`cannot be scheduled: ${textOf(scheduled.message)}`);
      }
      return waits('is pending');
    }
    default:
      return waits(`is ${textOf(status['phase']) || 'not known yet'}`);
  }
}

function crashLooping(status: Fields): ObjectStatus | undefined {
  const containers = ['initContainerStatuses', 'containerStatuses'].flatMap((field) => listOf(status[field]));
  const names = containers
    .map(fieldsOf)
    .filter(({ state }) => fieldsOf(fieldsOf(state)['waiting'])['reason'] === 'CrashLoopBackOff')
    .map(({ name }) => textOf(name));
  return names.length === 0 ? undefined : fails(`its containers crash again and again: ${names.join(', ')}`);
}

function definition({ conditions }: Judged): ObjectStatus {
  for (const condition of conditions) {
    const { type, status, reason } = condition;
    if (type === 'NamesAccepted' && status === 'False') return fails(wordsOf(condition));
    if (type !== 'Established') continue;
    if (status === 'True') return CURRENT;
    if (status === 'False' && reason !== 'Installing') return fails(wordsOf(condition));
  }
  return waits('is being installed');
}

export const wordsOf = ({ reason, message }: Condition): string =>
  [textOf(reason), textOf(message)].filter((text) => text !== '').join(': ') || 'no reason given';

const isTrue = (conditions: readonly Condition[], wanted: string): boolean =>
  conditions.some(({ type, status }) => type === wanted && status === 'True');

/** What another program wrote may have any form. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const conditionsOf = (status: Fields): readonly Condition[] => listOf(status['conditions']).map(fieldsOf);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const numberOf = (value: unknown, otherwise = 0): number => (typeof value === 'number' ? value : otherwise);
