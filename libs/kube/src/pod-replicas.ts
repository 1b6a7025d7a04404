import type { V1Pod } from '@kubernetes/client-node';
import { isKubeStatus } from './errors.js';
import type { KubeConnection } from './connection.js';
import { followTable, type ObjectTable, type TableOptions } from './object-table.js';

/** A pod as one replica of something that it serves. */
export interface PodReplica {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Empty until it has one. */
  readonly ip: string;
  /** The kind of the object that controls it; undefined if there is none. */
  readonly controller: string | undefined;
  /** Why it cannot be used now; undefined if it is ready. */
  readonly unready: string | undefined;
}

/** Undefined if it has ended: it never runs again. */
export function podReplicaOf({ metadata, status }: V1Pod): PodReplica | undefined {
  if (hasEnded({ status } as V1Pod)) return undefined;
  return {
    namespace: metadata?.namespace ?? '',
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    labels: metadata?.labels ?? {},
    annotations: metadata?.annotations ?? {},
    ip: status?.podIP ?? '',
    controller: metadata?.ownerReferences?.find(({ controller }) => controller === true)?.kind,
    unready: unreadyOf({ metadata, status } as V1Pod),
  };
}

function unreadyOf({ metadata, status }: V1Pod): string | undefined {
  if (metadata?.deletionTimestamp !== undefined) return 'the pod is terminating';
  const condition = status?.conditions?.find(({ type }) => type === 'Ready');
  if (condition?.status === 'True') return undefined;
  const why = [condition?.reason, condition?.message].filter((text) => text !== undefined && text !== '').join(': ');
  return `the pod is not ready${why === '' ? '' : `: ${why}`}`;
}

const hasEnded = ({ status }: V1Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Which pods to follow: those of one namespace, or of all. */
export interface PodChoice {
  readonly namespace: string | undefined;
  /** As kubectl writes it: `app=cnf,zone in (a, b)`. */
  readonly selector: string;
}

export function followPodReplicas(
  connection: KubeConnection,
  choice: PodChoice,
  more: Pick<TableOptions<V1Pod, PodReplica>, 'onChange' | 'logger'>,
): ObjectTable<PodReplica> {
  return followTable(connection, { ...placeOf(choice), pick: podReplicaOf, ...more });
}

/** Throws KubeError if the server refuses to list these pods: 400 if the selector is wrong. */
export async function tryPodChoice(connection: KubeConnection, choice: PodChoice): Promise<void> {
  const { path, query } = placeOf(choice);
  await connection.get(`${path}?${query}&limit=1`);
}

const placeOf = ({ namespace, selector }: PodChoice) => ({
  path: namespace === undefined ? '/api/v1/pods' : podsPath(namespace),
  query: `labelSelector=${encodeURIComponent(selector)}`,
});

/** The pod with this name, as the API server has it now; undefined if there is none, or if it has ended. */
export async function readPodReplica(
  connection: KubeConnection,
  namespace: string,
  name: string,
): Promise<PodReplica | undefined> {
  try {
    return podReplicaOf((await connection.get(`${podsPath(namespace)}/${encodeURIComponent(name)}`)) as V1Pod);
  } catch (error) {
    if (isKubeStatus(error, 404)) return undefined;
    throw error;
  }
}

const podsPath = (namespace: string): string => `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
