import { selects } from '#libs/manifests';
import type { KubeConnection } from './connection.js';
import { KubeError, outcomeOf } from './errors.js';
import type { RawList, RawObject } from './objects.js';
import type { KubePod } from './pods.js';

/** A PodDisruptionBudget that selects a pod. */
export interface PodBudget {
  readonly name: string;
  readonly allowed: number;
}

export type EvictionOutcome =
  | { readonly outcome: 'accepted' }
  /** The pod is gone, or its name belongs to another pod now. */
  | { readonly outcome: 'gone' }
  /** Not now: a budget or the server refuses it. */
  | {
      readonly outcome: 'refused';
      readonly reason: string;
      readonly budgets: readonly PodBudget[];
      readonly retryAfterMs: number | undefined;
    };

export interface RawBudget extends RawObject {
  readonly spec?: { readonly selector?: Parameters<typeof selects>[0] };
  readonly status?: { readonly disruptionsAllowed?: number };
}

const TOO_MANY = 429;
/** What the API server says if two budgets select one pod, which it does not support. */
const SERVER_ERROR = 500;

const podPath = ({ namespace, name }: Pick<KubePod, 'namespace' | 'name'>): string =>
  `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;

/** Evicts exactly this pod. Budgets are respected. */
export async function evictPod(
  connection: KubeConnection,
  pod: KubePod,
  graceSeconds?: number,
): Promise<EvictionOutcome> {
  const { namespace, name } = pod;
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { namespace, name },
    deleteOptions: optionsOf(pod, graceSeconds),
  };
  try {
    await connection.ask({ method: 'POST', path: `${podPath(pod)}/eviction`, body, isOfMany: true });
    return { outcome: 'accepted' };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.code === 404 || error.code === 409) return { outcome: 'gone' };
    const isBlocked =
      error.code === TOO_MANY || (error.code === SERVER_ERROR && /PodDisruptionBudget/.test(error.message));
    if (!isBlocked) throw error;
    const reason = [error.message, ...error.causes.map(({ message }) => message)]
      .filter((words) => words !== '')
      .join(' ');
    return {
      outcome: 'refused',
      reason,
      budgets: await budgetsOf(connection, pod),
      retryAfterMs: error.retryAfterMs,
    };
  }
}

/** Deletes exactly this pod and ignores budgets. With a grace period of 0 it does not wait until the pod has ended. */
export async function deletePod(
  connection: KubeConnection,
  pod: KubePod,
  graceSeconds?: number,
): Promise<'accepted' | 'gone'> {
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...optionsOf(pod, graceSeconds) };
  const deleted = connection.ask({ method: 'DELETE', path: podPath(pod), body, isOfMany: true });
  return typeof (await outcomeOf(deleted)) === 'string' ? 'gone' : 'accepted';
}

/** The uid makes sure that a new pod with the same name is left alone. */
const optionsOf = ({ uid }: KubePod, graceSeconds: number | undefined): object => ({
  preconditions: { uid },
  ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
});

async function budgetsOf(connection: KubeConnection, pod: KubePod): Promise<readonly PodBudget[]> {
  const list = (await connection.get(
    `/apis/policy/v1/namespaces/${encodeURIComponent(pod.namespace)}/poddisruptionbudgets`,
  )) as RawList<RawBudget>;
  return (list.items ?? [])
    .filter(({ spec }) => spec?.selector !== undefined && selects(spec.selector, pod.labels))
    .map(({ metadata, status }) => ({
      name: `${pod.namespace}/${metadata?.name}`,
      allowed: status?.disruptionsAllowed ?? 0,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
