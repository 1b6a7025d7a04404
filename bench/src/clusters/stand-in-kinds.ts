type Fields = Record<string, unknown>;

/** A kind that the stand-in serves. */
export interface ServedKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  /** Whether a change of its spec gives it another generation. */
  readonly hasGeneration?: true;
  /** What the server sets if nobody has. */
  readonly defaults?: (object: Fields) => Fields;
  /** The status that its controller writes once all is well. */
  readonly status?: (object: Fields, nowText: string) => Fields;
}

export const KINDS: readonly ServedKind[] = [
  { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', isNamespaced: true },
  { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', isNamespaced: true, defaults: () => ({ type: 'Opaque' }) },
  { apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', isNamespaced: true },
  { apiVersion: 'v1', kind: 'Service', plural: 'services', isNamespaced: true, defaults: service },
  { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', isNamespaced: false, defaults: namespace },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    plural: 'deployments',
    isNamespaced: true,
    hasGeneration: true,
    defaults: deployment,
    status: available,
  },
];

function service(): Fields {
  return {
    spec: {
      clusterIP: '10.0.0.7',
      clusterIPs: ['10.0.0.7'],
      internalTrafficPolicy: 'Cluster',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      type: 'ClusterIP',
    },
    status: { loadBalancer: {} },
  };
}

function namespace({ metadata }: Fields): Fields {
  const { name } = metadata as { readonly name: string };
  return {
    metadata: { labels: { 'kubernetes.io/metadata.name': name } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  };
}

function deployment({ spec }: Fields): Fields {
  const { template } = spec as { readonly template: { readonly spec: { readonly containers: readonly Fields[] } } };
  const containers = template.spec.containers.map(({ name }) => ({
    name,
    imagePullPolicy: 'IfNotPresent',
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  }));
  return {
    spec: {
      progressDeadlineSeconds: 600,
      replicas: 1,
      revisionHistoryLimit: 10,
      strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' }, type: 'RollingUpdate' },
      template: {
        spec: {
          containers,
          dnsPolicy: 'ClusterFirst',
          restartPolicy: 'Always',
          schedulerName: 'default-scheduler',
          securityContext: {},
          terminationGracePeriodSeconds: 30,
        },
      },
    },
    status: {},
  };
}

function available({ metadata, spec }: Fields, now: string): Fields {
  const { generation } = metadata as { readonly generation: number };
  const { replicas } = spec as { readonly replicas: number };
  const condition = (type: string, reason: string, message: string): Fields => ({
    type,
    status: 'True',
    lastUpdateTime: now,
    lastTransitionTime: now,
    reason,
    message,
  });
  return {
    observedGeneration: generation,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
    conditions: [
      condition('Available', 'MinimumReplicasAvailable', 'Deployment has minimum availability.'),
      condition('Progressing', 'NewReplicaSetAvailable', 'ReplicaSet has successfully progressed.'),
    ],
  };
}
