import { KubeError, type ClusterApi } from '#libs/kube/lean';
import { APPLY_SET } from '#libs/manifests/lean';
import { RefusedError, UnreachableError } from '../ports.js';
import { CONFIG_MAPS, isOwnedBy } from './cluster-owner.js';
import type { Reach } from '../targets/reach.js';
import type { TargetStorage } from '../targets/target-storage.js';

/** The server is in trouble, or asks to wait. What it was asked says nothing about the change. */
const IN_TROUBLE: readonly number[] = [429, 502, 503, 504];

/** Calls the API server of one cluster. Each call has a timeout. */
export class ClusterCalls {
  constructor(
    /** Undefined if the kubeconfig cannot be used. Then the cluster never answers. */
    private readonly api: ClusterApi | undefined,
    private readonly reach: Pick<Reach, 'call'>,
    private readonly storage: Pick<TargetStorage, 'fence'>,
  ) {}

  /** Fails at once while the cluster is known not to answer. Throws KubeError if it refuses. */
  read<T>(work: (api: ClusterApi) => Promise<T>): Promise<T> {
    return this.reach.call(() => {
      if (this.api === undefined) throw new Error('a cluster without a usable kubeconfig was called');
      return heard(this.api, work);
    });
  }

  /** Definitions were removed or replaced. */
  forgetKinds(): void {
    this.api?.forgetKinds();
  }

  /** Only while this copy owns the cluster. */
  async write<T>(work: (api: ClusterApi) => Promise<T>): Promise<T> {
    const leftMs = await this.storage.fence();
    return this.read((api) => work(api.within(leftMs)));
  }
}

/** Asks whether the API server can work. Throws Unreachable with the reason if not. */
export const askReady = (api: ClusterApi): Promise<void> =>
  heard(api, async () => {
    try {
      await api.ready();
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      // It answers, and who may ask this is up to the cluster.
      if (error.code === 403) return;
      if (error.code !== 401)
        throw new UnreachableError(`${api.server} is not ready: it answers ${error.code}: ${shortened(error.message)}`);
      throw error;
    }
  });

/** Whether the cluster says that it is that of the node. Throws Unreachable if it is that of another one. */
export const askOwner = async (api: ClusterApi, node: string): Promise<boolean> => {
  try {
    return isOwnedBy(await heard(api, () => api.read(CONFIG_MAPS, APPLY_SET.name, APPLY_SET.namespace)), node);
  } catch (error) {
    // A change says which right is missing.
    if (error instanceof KubeError && error.code === 403) return true;
    throw error;
  }
};

async function heard<T>(api: ClusterApi, work: (api: ClusterApi) => Promise<T>): Promise<T> {
  try {
    return await work(api);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name === 'KubeUnreachableError' || error.name === 'KubeConfigError')
      throw new UnreachableError(error.message);
    if (!(error instanceof KubeError)) throw error;
    if (error.code === 401)
      throw new UnreachableError(
        `${api.server} does not accept the credentials of the kubeconfig (401 ${error.message}): they have expired or were revoked, or are for another cluster. Replace the kubeconfig`,
      );
    if (IN_TROUBLE.includes(error.code))
      throw new UnreachableError(`${api.server} answers ${error.code}: ${shortened(error.message)}`);
    throw error;
  }
}

/** What people need of a text that can list many checks. */
const shortened = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300);

/** Why the cluster refuses an object, as a refusal of the change. */
export function refusalFrom(error: unknown): unknown {
  if (!(error instanceof KubeError)) return error;
  const { code, message } = error;
  if (error.lacksRight)
    return new RefusedError('node', `the user of the kubeconfig lacks a right: ${message}. Grant it there`);
  if (code === 400 || code === 422 || isOfType(error))
    return new RefusedError('content', `the cluster refuses it: ${message}`);
  // That passes, so the config is not to blame.
  if (isEndingNamespace(error))
    return new RefusedError('node', `the namespace is still being deleted, and must be gone first: ${message}`);
  // An admission webhook, a policy or a quota.
  if (code === 403) return new RefusedError('content', `the cluster does not admit it: ${message}`);
  if (code === 413) return new RefusedError('content', `it is too large for the cluster: ${message}`);
  return new RefusedError('node', `the API server answers ${code}: ${message}`);
}

/** A value of a wrong type is answered with 500. */
const isOfType = ({ code, message }: KubeError): boolean =>
  code === 500 && /failed to create typed patch/.test(message);

/** Another manager owns a field. */
export interface FieldConflict {
  readonly manager: string;
  readonly field: string;
}

/** The fields that other managers own; undefined if the refusal is not about that. */
export function conflictsIn(error: unknown): readonly FieldConflict[] | undefined {
  if (!(error instanceof KubeError) || error.code !== 409) return undefined;
  const conflicts = error.causes.filter(({ reason }) => reason === 'FieldManagerConflict');
  if (conflicts.length === 0) return undefined;
  return conflicts.map(({ field, message }) => ({ field, manager: /"([^"]*)"/.exec(message)?.[1] ?? message }));
}

export const isOvertaken = (error: unknown): boolean =>
  error instanceof KubeError && error.code === 409 && conflictsIn(error) === undefined;

/** The namespace of the object does not exist, yet. */
export const isOfNamespace = (error: unknown): boolean =>
  error instanceof KubeError && error.code === 404 && error.message.startsWith('namespaces "');

/** The cluster does not serve the kind any more, or not yet again. */
export const isUnserved = (error: unknown): boolean =>
  error instanceof KubeError && error.code === 404 && !isOfNamespace(error);

/** The namespace is being deleted. */
export const isEndingNamespace = (error: unknown): boolean =>
  error instanceof KubeError && error.code === 403 && /is being terminated/.test(error.message);
