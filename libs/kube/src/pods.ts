import type { V1Pod, V1PodSpec } from '@kubernetes/client-node';
import type { PodFeatures } from '#libs/manifests';
import type { KubeConnection } from './connection.js';

/** What a drain needs to know about a pod. */
export interface KubePod extends PodFeatures {
  readonly name: string;
  readonly uid: string;
  /** The kind of the object that controls it; undefined if there is none. */
  readonly controller: string | undefined;
  /** A mirror pod: it represents a static pod of the kubelet, which the API server cannot evict. */
  readonly mirror: boolean;
  readonly emptyDir: boolean;
  /** Succeeded or failed: it no longer runs. */
  readonly finished: boolean;
  /** It is terminating. */
  readonly ending: boolean;
  readonly graceSeconds: number;
}

const MIRROR = 'kubernetes.io/config.mirror';
const DEFAULT_GRACE_SECONDS = 30;

export function podOf(raw: V1Pod): KubePod {
  const {
    name = '',
    namespace = '',
    uid = '',
    labels = {},
    annotations = {},
    ownerReferences = [],
    deletionTimestamp,
  } = raw.metadata ?? {};
  const {
    priority = 0,
    terminationGracePeriodSeconds = DEFAULT_GRACE_SECONDS,
    volumes = [],
    containers = [],
    initContainers = [],
  }: Partial<V1PodSpec> = raw.spec ?? {};
  const resourceNames = [...containers, ...initContainers].flatMap(({ resources = {} }) => [
    ...Object.keys(resources.requests ?? {}),
    ...Object.keys(resources.limits ?? {}),
  ]);
  return {
    namespace,
    name,
    uid,
    labels,
    priority,
    graceSeconds: terminationGracePeriodSeconds,
    controller: ownerReferences.find(({ controller }) => controller === true)?.kind,
    mirror: annotations[MIRROR] !== undefined,
    emptyDir: volumes.some(({ emptyDir }) => emptyDir !== undefined),
    finished: raw.status?.phase === 'Succeeded' || raw.status?.phase === 'Failed',
    ending: deletionTimestamp !== undefined,
    resources: [...new Set(resourceNames.filter((resource) => resource.includes('/')))].sort(),
  };
}

export const podsQuery = (node: string): string => `fieldSelector=${encodeURIComponent(`spec.nodeName=${node}`)}`;

/** The pods of a node as the API server has them now, not from a cache. */
export async function podsOn(connection: KubeConnection, node: string): Promise<readonly KubePod[]> {
  const pods: KubePod[] = [];
  for await (const { items = [] } of connection.pages<V1Pod>('/api/v1/pods', podsQuery(node)))
    pods.push(...items.map(podOf));
  return pods;
}
