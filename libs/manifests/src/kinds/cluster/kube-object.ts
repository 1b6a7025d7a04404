/** An object of a Kubernetes API, as a manifest has it. */
export interface KubeManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** The API group of an apiVersion; empty for the core group. */
export const groupOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';

/** As kubectl and ApplySets name a kind: `Deployment.apps`. */
export function groupKindOf({ apiVersion, kind }: Pick<KubeManifest, 'apiVersion' | 'kind'>): string {
  const group = groupOf(apiVersion);
  return group === '' ? kind : `${kind}.${group}`;
}

/**
 * What identifies an object in a cluster, whatever version of the API it is written in: `Deployment.apps/prod/web`, or
 * `Namespace/prod`.
 */
export function kubeObjectId(object: Pick<KubeManifest, 'apiVersion' | 'kind' | 'metadata'>): string {
  const { name, namespace } = object.metadata;
  return [groupKindOf(object), ...(namespace === undefined ? [] : [namespace]), name].join('/');
}

/** The kinds of Kubernetes whose objects are in no namespace. */
const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  'Namespace',
  'PersistentVolume',
  'CustomResourceDefinition.apiextensions.k8s.io',
  'APIService.apiregistration.k8s.io',
  'ClusterRole.rbac.authorization.k8s.io',
  'ClusterRoleBinding.rbac.authorization.k8s.io',
  'StorageClass.storage.k8s.io',
  'CSIDriver.storage.k8s.io',
  'VolumeAttributesClass.storage.k8s.io',
  'PriorityClass.scheduling.k8s.io',
  'RuntimeClass.node.k8s.io',
  'IngressClass.networking.k8s.io',
  'FlowSchema.flowcontrol.apiserver.k8s.io',
  'PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io',
  'MutatingWebhookConfiguration.admissionregistration.k8s.io',
  'ValidatingWebhookConfiguration.admissionregistration.k8s.io',
  'MutatingAdmissionPolicy.admissionregistration.k8s.io',
  'MutatingAdmissionPolicyBinding.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicy.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io',
  'ClusterTrustBundle.certificates.k8s.io',
  'DeviceClass.resource.k8s.io',
  'ResourceSlice.resource.k8s.io',
  'IPAddress.networking.k8s.io',
  'ServiceCIDR.networking.k8s.io',
]);

/** The groups whose kinds are all known here. */
const OWN_GROUPS: ReadonlySet<string> = new Set([
  '',
  'apps',
  'batch',
  'autoscaling',
  'policy',
  'rbac.authorization.k8s.io',
]);

/** Whether objects of a kind are in a namespace; undefined if only the cluster knows. */
export function isNamespaced(object: Pick<KubeManifest, 'apiVersion' | 'kind'>): boolean | undefined {
  if (CLUSTER_SCOPED.has(groupKindOf(object))) return false;
  return OWN_GROUPS.has(groupOf(object.apiVersion)) ? true : undefined;
}

/**
 * When an object is applied: namespaces and definitions come before what needs them, and what can refuse other objects
 * comes last.
 */
export const KUBE_RANKS = ['namespaces', 'definitions', 'objects', 'admission'] as const;
export type KubeRank = (typeof KUBE_RANKS)[number];

export function kubeRankOf(object: Pick<KubeManifest, 'apiVersion' | 'kind'>): KubeRank {
  const kind = groupKindOf(object);
  if (kind === 'Namespace') return 'namespaces';
  if (kind === 'CustomResourceDefinition.apiextensions.k8s.io') return 'definitions';
  return ADMISSION.test(kind) ? 'admission' : 'objects';
}

const ADMISSION = /\.admissionregistration\.k8s\.io$/;

/** The objects of a rendered fragment. */
export const kubeObjectsOf = (spec: Readonly<Record<string, unknown>>): readonly KubeManifest[] =>
  Array.isArray(spec['objects']) ? (spec['objects'] as readonly KubeManifest[]) : [];

/** Where the applier of a cluster notes which kinds of objects it manages there. */
export const APPLY_SET = { namespace: 'default', name: 'sluice-applied' } as const;
