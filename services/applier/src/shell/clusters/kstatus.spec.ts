import { kstatus } from './kstatus.js';

const NOW_MS = Date.parse('2026-01-01T00:01:00Z');
type Fields = Readonly<Record<string, unknown>>;

const object = (
  apiVersion: string,
  kind: string,
  status: Fields = {},
  spec: Fields = {},
  metadata: Fields = {},
): Fields => ({
  apiVersion,
  kind,
  metadata: { name: 'a', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
  spec,
  status,
});
const condition = (type: string, status: string, reason = '', message = ''): Fields => ({
  type,
  status,
  reason,
  message,
});
const AVAILABLE = condition('Available', 'True', 'MinimumReplicasAvailable');
const PROGRESSED = condition('Progressing', 'True', 'NewReplicaSetAvailable');
const counts = (all: number, more: Fields = {}): Fields => ({
  observedGeneration: 2,
  replicas: all,
  updatedReplicas: all,
  readyReplicas: all,
  availableReplicas: all,
  conditions: [AVAILABLE, PROGRESSED],
  ...more,
});
const deployment = (status: Fields, spec: Fields = { replicas: 2, progressDeadlineSeconds: 600 }): Fields =>
  object('apps/v1', 'Deployment', status, spec);
const stateful = (status: Fields, spec: Fields = { replicas: 2 }): Fields =>
  object('apps/v1', 'StatefulSet', status, spec);
const setCounts = {
  replicas: 2,
  readyReplicas: 2,
  updatedReplicas: 2,
  currentReplicas: 2,
  currentRevision: 'r',
  updateRevision: 'r',
};
const daemon = (status: Fields, metadata: Fields = {}): Fields => object('apps/v1', 'DaemonSet', status, {}, metadata);
const daemonCounts = {
  observedGeneration: 2,
  desiredNumberScheduled: 2,
  currentNumberScheduled: 2,
  updatedNumberScheduled: 2,
  numberAvailable: 2,
  numberReady: 2,
};
const replicaSet = (status: Fields): Fields => object('apps/v1', 'ReplicaSet', status, { replicas: 2 });
const setReady = { replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2 };
const job = (status: Fields): Fields => object('batch/v1', 'Job', status);
const pod = (status: Fields, metadata: Fields = {}): Fields => object('v1', 'Pod', status, {}, metadata);
const looping = { name: 'c', state: { waiting: { reason: 'CrashLoopBackOff' } } };
const unschedulable = {
  phase: 'Pending',
  conditions: [condition('PodScheduled', 'False', 'Unschedulable', 'no room')],
};
const definition = (...conditions: readonly Fields[]): Fields =>
  object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', { conditions });
const custom = (status: Fields): Fields => object('example.dev/v1', 'Thing', status);

const CASES: readonly (readonly [string, Fields, string, string])[] = [
  [
    'an object that is being deleted',
    object('v1', 'ConfigMap', {}, {}, { deletionTimestamp: 'x' }),
    'terminating',
    'is being deleted',
  ],
  [
    'an object whose controller is behind',
    custom({ observedGeneration: 1 }),
    'in-progress',
    'its controller has seen generation 1 of 2',
  ],
  [
    'an object that reconciles',
    custom({ conditions: [condition('Reconciling', 'True', '', 'working')] }),
    'in-progress',
    'Reconciling: working',
  ],
  [
    'an object that is stalled',
    custom({ conditions: [condition('Stalled', 'True', '', 'no')] }),
    'failed',
    'Stalled: no',
  ],
  ['a custom object without a status', custom({}), 'current', ''],
  ['a custom object that is ready', custom({ conditions: [condition('Ready', 'True')] }), 'current', ''],
  [
    'a custom object that is not',
    custom({ conditions: [condition('Ready', 'False', 'Wait', 'soon')] }),
    'in-progress',
    'Ready=False: Wait: soon',
  ],
  ['a ConfigMap', object('v1', 'ConfigMap'), 'current', ''],
  ['a Namespace', object('v1', 'Namespace', { phase: 'Active' }), 'current', ''],
  ['a Deployment', deployment(counts(2)), 'current', ''],
  ['a Deployment without replicas', deployment(counts(0), { replicas: 0 }), 'current', ''],
  ['a new Deployment', deployment({}), 'in-progress', '0 of 2 replicas exist'],
  [
    'a Deployment whose pods are not available',
    deployment(counts(2, { availableReplicas: 1, conditions: [condition('Available', 'False', 'Min', 'too few')] })),
    'in-progress',
    '1 of 2 replicas are available (Available=False: Min: too few)',
  ],
  ['a Deployment with old pods', deployment(counts(2, { replicas: 3 })), 'in-progress', '1 old replicas still exist'],
  [
    'a Deployment that is being updated',
    deployment(counts(2, { updatedReplicas: 1 })),
    'in-progress',
    '1 of 2 replicas are updated',
  ],
  [
    'a Deployment whose pods are not ready',
    deployment(counts(2, { readyReplicas: 1 })),
    'in-progress',
    '1 of 2 replicas are ready',
  ],
  [
    'a Deployment whose new pods are not done',
    deployment(counts(2, { conditions: [AVAILABLE, condition('Progressing', 'True', 'ReplicaSetUpdated', 'x')] })),
    'in-progress',
    'Progressing=True: ReplicaSetUpdated: x',
  ],
  [
    'a Deployment that is not available',
    deployment(counts(2, { conditions: [PROGRESSED] })),
    'in-progress',
    'is not available',
  ],
  [
    'a Deployment that took too long',
    deployment(counts(2, { conditions: [condition('Progressing', 'False', 'ProgressDeadlineExceeded', 'stuck')] })),
    'failed',
    'ProgressDeadlineExceeded: stuck',
  ],
  ['a StatefulSet', stateful(setCounts), 'current', ''],
  ['a StatefulSet that is updated by hand', stateful({}, { updateStrategy: { type: 'OnDelete' } }), 'current', ''],
  ['a StatefulSet with too few pods', stateful({ ...setCounts, replicas: 1 }), 'in-progress', '1 of 2 replicas exist'],
  [
    'a StatefulSet that is not ready',
    stateful({ ...setCounts, readyReplicas: 1 }),
    'in-progress',
    '1 of 2 replicas are ready',
  ],
  ['a StatefulSet with old pods', stateful({ ...setCounts, replicas: 3 }), 'in-progress', '1 old replicas still exist'],
  [
    'a StatefulSet with another revision',
    stateful({ ...setCounts, updateRevision: 's' }),
    'in-progress',
    'its pods have another revision',
  ],
  [
    'a StatefulSet that replaces its pods',
    stateful({ ...setCounts, currentReplicas: 1 }),
    'in-progress',
    '1 of 2 replicas are current',
  ],
  [
    'a StatefulSet that is updated in part',
    stateful(
      { ...setCounts, updatedReplicas: 0 },
      { replicas: 2, updateStrategy: { rollingUpdate: { partition: 1 } } },
    ),
    'in-progress',
    '0 of 1 replicas are updated',
  ],
  [
    'a StatefulSet whose part is updated',
    stateful(
      { ...setCounts, updatedReplicas: 1 },
      { replicas: 2, updateStrategy: { rollingUpdate: { partition: 1 } } },
    ),
    'current',
    '',
  ],
  ['a ReplicaSet', replicaSet(setReady), 'current', ''],
  [
    'a ReplicaSet that is not ready',
    replicaSet({ ...setReady, readyReplicas: 1 }),
    'in-progress',
    'readyReplicas is 1 of 2',
  ],
  ['a ReplicaSet with old pods', replicaSet({ ...setReady, replicas: 3 }), 'in-progress', '1 old replicas still exist'],
  [
    'a ReplicaSet that cannot create pods',
    replicaSet({ ...setReady, conditions: [condition('ReplicaFailure', 'True', 'Quota', 'full')] }),
    'in-progress',
    'ReplicaFailure: Quota: full',
  ],
  ['a DaemonSet', daemon(daemonCounts), 'current', ''],
  ['a new DaemonSet', daemon({}), 'in-progress', 'its controller has not seen it yet'],
  [
    'a DaemonSet that was not counted',
    daemon({ observedGeneration: 2 }),
    'in-progress',
    'its controller has not counted the nodes yet',
  ],
  [
    'a DaemonSet that is being updated',
    daemon({ ...daemonCounts, updatedNumberScheduled: 1 }),
    'in-progress',
    '1 of 2 pods are updated',
  ],
  [
    'a DaemonSet that is not ready',
    daemon({ ...daemonCounts, numberReady: 0 }),
    'in-progress',
    '0 of 2 pods are ready',
  ],
  ['a Job that has not started', job({}), 'in-progress', 'has not started'],
  ['a Job that runs', job({ startTime: 'x' }), 'current', ''],
  ['a Job that is complete', job({ startTime: 'x', conditions: [condition('Complete', 'True')] }), 'current', ''],
  [
    'a Job that failed',
    job({ startTime: 'x', conditions: [condition('Failed', 'True', 'Limit', 'too often')] }),
    'failed',
    'Limit: too often',
  ],
  ['a Pod that is ready', pod({ phase: 'Running', conditions: [condition('Ready', 'True')] }), 'current', ''],
  ['a Pod that runs', pod({ phase: 'Running' }), 'in-progress', 'runs, but is not ready'],
  ['a Pod that succeeded', pod({ phase: 'Succeeded' }), 'current', ''],
  ['a Pod that failed and will not run again', pod({ phase: 'Failed', reason: 'Evicted' }), 'current', ''],
  [
    'a Pod that crashes and waits to start again',
    pod({ phase: 'Pending', containerStatuses: [looping] }),
    'in-progress',
    'is pending',
  ],
  [
    'a Deployment without a deadline',
    deployment(counts(2, { conditions: [AVAILABLE] }), { replicas: 2, progressDeadlineSeconds: 2_147_483_647 }),
    'current',
    '',
  ],
  ['a Pod that is pending', pod({ phase: 'Pending' }), 'in-progress', 'is pending'],
  [
    'a Pod that crashes',
    pod({ phase: 'Running', containerStatuses: [looping] }),
    'failed',
    'its containers crash again and again: c',
  ],
  ['a Pod that cannot be scheduled for long', pod(unschedulable), 'failed', 'cannot be scheduled: no room'],
  [
    'a new Pod that cannot be scheduled',
    pod(unschedulable, { creationTimestamp: '2026-01-01T00:00:50Z' }),
    'in-progress',
    'cannot be scheduled: no room',
  ],
  ['a claim that is bound', object('v1', 'PersistentVolumeClaim', { phase: 'Bound' }), 'current', ''],
  [
    'a claim that is pending',
    object('v1', 'PersistentVolumeClaim', { phase: 'Pending' }),
    'in-progress',
    'is Pending, not Bound',
  ],
  ['a Service', object('v1', 'Service', {}, { type: 'ClusterIP' }), 'current', ''],
  [
    'a load balancer without an IP',
    object('v1', 'Service', {}, { type: 'LoadBalancer' }),
    'in-progress',
    'has no cluster IP yet',
  ],
  ['a load balancer', object('v1', 'Service', {}, { type: 'LoadBalancer', clusterIP: '10.0.0.1' }), 'current', ''],
  ['a definition', definition(condition('NamesAccepted', 'True'), condition('Established', 'True')), 'current', ''],
  ['a new definition', definition(), 'in-progress', 'is being installed'],
  [
    'a definition whose names are taken',
    definition(condition('NamesAccepted', 'False', 'Conflict', 'taken')),
    'failed',
    'Conflict: taken',
  ],
];

test.each(CASES)('%s', (_name, one, is, message) => {
  expect(kstatus(one, NOW_MS)).toEqual({ is, message });
});

test('an object of any form is judged without an error', () => {
  for (const kind of ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'])
    for (const odd of [null, 'x', 7, [], { conditions: 'x' }, { conditions: [null, 7] }])
      expect(kstatus({ apiVersion: 'apps/v1', kind, metadata: odd, spec: odd, status: odd }, NOW_MS).is).toBeDefined();
});
