import type { V1Secret } from '@kubernetes/client-node';
import type { Logger } from '#libs/process';
import type { KubeConnection } from './connection.js';
import { isKubeStatus } from './errors.js';
import { followTable, type ObjectTable, type TableOptions } from './object-table.js';
import type { RawList, RawObject } from './objects.js';
import { secretOf, type KubeSecret } from './secrets.js';

/** A Cluster of Cluster API, as its hub shows it. */
export interface HubCluster {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The newest version of Cluster API that the hub serves. */
  readonly apiVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Why it cannot be used now; undefined if its control plane is ready. */
  readonly unready: string | undefined;
}

interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

interface RawCluster extends RawObject {
  readonly status?: {
    /** In v1beta2. */
    readonly initialization?: { readonly controlPlaneInitialized?: boolean };
    /** In v1beta1. */
    readonly controlPlaneReady?: boolean;
    readonly conditions?: readonly Condition[];
  };
}

/** In v1beta2, and in v1beta1. */
const CONTROL_PLANE = ['ControlPlaneAvailable', 'ControlPlaneReady'];

/** From any version: the fields of the other are absent. */
export function hubClusterOf({ metadata, status = {} }: RawCluster, version: string): HubCluster {
  return {
    namespace: metadata?.namespace ?? '',
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    apiVersion: `cluster.x-k8s.io/${version}`,
    labels: metadata?.labels ?? {},
    annotations: metadata?.annotations ?? {},
    unready: metadata?.deletionTimestamp === undefined ? unreadyOf(status) : 'the Cluster is being deleted',
  };
}

function unreadyOf({ initialization, controlPlaneReady, conditions = [] }: NonNullable<RawCluster['status']>) {
  const wrong = conditions.find(({ type = '', status }) => CONTROL_PLANE.includes(type) && status === 'False');
  const why = [wrong?.reason, wrong?.message].filter((text) => text !== undefined && text !== '').join(': ');
  const isReady = initialization?.controlPlaneInitialized === true || controlPlaneReady === true;
  if (isReady && wrong === undefined) return undefined;
  return `the control plane is not ready${why === '' ? '' : `: ${why}`}`;
}

const GROUP = '/apis/cluster.x-k8s.io';
/** The newest first. */
const VERSIONS = ['v1beta2', 'v1beta1'];
/** How often to look whether Cluster API was installed. */
const INSTALLED_MS = 60_000;
const AGAIN_MS = 5_000;

/** The newest known version that the hub serves; undefined without Cluster API. */
async function servedVersion(connection: KubeConnection): Promise<string | undefined> {
  try {
    const { versions = [] } = (await connection.get(GROUP)) as {
      readonly versions?: readonly { readonly version?: string }[];
    };
    return VERSIONS.find((one) => versions.some(({ version }) => version === one));
  } catch (error) {
    if (isKubeStatus(error, 404)) return undefined;
    throw error;
  }
}

/** Follows the Clusters of a namespace, or of all. Without Cluster API there are none. */
export function followHubClusters(
  connection: KubeConnection,
  namespace: string | undefined,
  { onChange, logger }: { readonly onChange: () => void; readonly logger: Logger },
): ObjectTable<HubCluster> {
  let table: ObjectTable<HubCluster> | undefined;
  let isWithout = false;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const later = (ms: number): void => {
    if (!isStopped) timer = setTimeout(() => void look(), ms).unref();
  };
  const look = async (): Promise<void> => {
    try {
      const version = await servedVersion(connection);
      if (isStopped) return;
      isWithout = version === undefined;
      if (version === undefined) {
        onChange();
        return later(INSTALLED_MS);
      }
      table = followTable<RawCluster, HubCluster>(connection, {
        path: clustersPath(version, namespace),
        pick: (cluster) => hubClusterOf(cluster, version),
        onChange,
        // The version is not served any more, or Cluster API was removed.
        onMissing: () => {
          table?.stop();
          clearTimeout(timer);
          later(AGAIN_MS);
        },
        logger,
      });
    } catch (error) {
      logger.debug({ error }, 'the hub does not say which versions of Cluster API it serves; trying again');
      later(AGAIN_MS);
    }
  };
  void look();
  return {
    get objects() {
      return isWithout ? NONE : table?.objects;
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      table?.stop();
    },
  };
}

const NONE: ReadonlyMap<string, HubCluster> = new Map();

const clustersPath = (version: string, namespace: string | undefined): string =>
  `${GROUP}/${version}${namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`}/clusters`;

/** Secrets with this label were made by Cluster API for the cluster that it names. */
const OWN_LABEL = 'cluster.x-k8s.io/cluster-name';
const OWN_SUFFIX = '-kubeconfig';
/** Secrets with this label contain a kubeconfig of the cluster that it names. */
export const CREDENTIAL_LABEL = 'sluice.dev/cluster';

type Following = Pick<TableOptions<V1Secret, KubeSecret>, 'onChange' | 'logger'>;

/** Follows the Secrets in which Cluster API keeps kubeconfigs. Its other Secrets are not kept. */
export const followOwnKubeconfigs = (
  connection: KubeConnection,
  namespace: string | undefined,
  more: Following,
): ObjectTable<KubeSecret> =>
  followTable(connection, {
    path: secretsPath(namespace),
    query: `labelSelector=${encodeURIComponent(OWN_LABEL)}`,
    pick: (secret: V1Secret) => (secret.metadata?.name?.endsWith(OWN_SUFFIX) === true ? secretOf(secret) : undefined),
    ...more,
  });

/** Follows the Secrets that contain kubeconfigs for Sluice. */
export const followCredentials = (
  connection: KubeConnection,
  namespace: string | undefined,
  more: Following,
): ObjectTable<KubeSecret> =>
  followTable(connection, {
    path: secretsPath(namespace),
    query: `labelSelector=${encodeURIComponent(CREDENTIAL_LABEL)}`,
    pick: secretOf,
    ...more,
  });

/** Whether the hub has a Cluster with this name, or a Secret for it, according to the API server and not to a cache. */
export async function hasCluster(connection: KubeConnection, namespace: string, name: string): Promise<boolean> {
  const selector = encodeURIComponent(`${CREDENTIAL_LABEL}=${name}`);
  const { items = [] } = (await connection.get(
    `${secretsPath(namespace)}?labelSelector=${selector}&limit=1`,
  )) as RawList<RawObject>;
  if (items.length > 0) return true;
  const version = await servedVersion(connection);
  if (version === undefined) return false;
  try {
    await connection.get(`${clustersPath(version, namespace)}/${encodeURIComponent(name)}`);
    return true;
  } catch (error) {
    if (isKubeStatus(error, 404)) return false;
    throw error;
  }
}

const secretsPath = (namespace: string | undefined): string =>
  namespace === undefined ? '/api/v1/secrets' : `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
