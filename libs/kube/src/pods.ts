import type { KubeConnection } from './connection.js';
import type { RawObject } from './objects.js';

/** A pod, as far as a drain asks for it. */
export interface KubePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Kind of the object that controls it; undefined for none. */
  readonly controller: string | undefined;
  /** Of a static pod: the kubelet's own, which the API server only mirrors. */
  readonly mirror: boolean;
  readonly emptyDir: boolean;
  /** Succeeded or failed: nothing of it runs any more. */
  readonly finished: boolean;
  /** It was told to end. */
  readonly ending: boolean;
  readonly priority: number;
  /** The extended resources that it asks for, such as `example.com/nic`. */
  readonly resources: readonly string[];
  readonly graceSeconds: number;
}

interface RawContainer {
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string>>;
    readonly limits?: Readonly<Record<string, string>>;
  };
}
interface RawPod extends RawObject {
  readonly spec?: {
    readonly priority?: number;
    readonly terminationGracePeriodSeconds?: number;
    readonly volumes?: readonly { readonly emptyDir?: object }[];
    readonly containers?: readonly RawContainer[];
    readonly initContainers?: readonly RawContainer[];
  };
  readonly status?: { readonly phase?: string };
}

const MIRROR = 'kubernetes.io/config.mirror';
const DEFAULT_GRACE_SECONDS = 30;

export function podOf(raw: RawPod): KubePod {
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
  } = raw.spec ?? {};
  const asked = [...containers, ...initContainers].flatMap(({ resources = {} }) => [
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
    resources: [...new Set(asked.filter((resource) => resource.includes('/')))].sort(),
  };
}

export const podsQuery = (node: string): string => `fieldSelector=${encodeURIComponent(`spec.nodeName=${node}`)}`;

/** The pods of a node as the API server has them now, not as some cache had them. */
export async function podsOn(connection: KubeConnection, node: string): Promise<readonly KubePod[]> {
  const pods: KubePod[] = [];
  for await (const { items = [] } of connection.pages<RawPod>('/api/v1/pods', podsQuery(node)))
    pods.push(...items.map(podOf));
  return pods;
}
