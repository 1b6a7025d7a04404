import { createHash } from 'node:crypto';
import type { Kube, KubeOptions } from '#libs/kube';
import type { Logger } from '#libs/process';
import {
  BoundObjects,
  CALL_TIMEOUT_MS,
  clusterTarget,
  hubOf,
  type Timing,
} from '../../../services/applier/src/shell/targets/index.js';
import { clusterOfNode, clustersOf } from './hub-listing.js';
import { confirmSame, INVENTORY_LABEL, type Inventory, type Listing } from './inventory.js';
import { openKube } from './pod-inventory.js';
import { Soon } from './soon.js';

export interface HubInventoryOptions extends Pick<KubeOptions, 'kubeconfig' | 'context' | 'env'> {
  /** Undefined: all namespaces. */
  readonly namespace?: string | undefined;
  readonly log: Logger;
}

/** The clusters of a hub. Throws UsageError if the kubeconfig cannot be used. */
export async function hubInventory(options: HubInventoryOptions): Promise<Inventory> {
  const { namespace, log } = options;
  const hub = await openKube(options);
  const api = hub.objects({ timeoutMs: CALL_TIMEOUT_MS, logger: log });
  const objects = new BoundObjects({ api, call: (work) => work(api), watch: 'namespace', user: HUB_USER });
  let clusterId = '';
  return {
    name: async () => {
      clusterId = await hub.clusterId();
      const digest = createHash('sha256').update(JSON.stringify([clusterId, namespace ?? '']));
      return `clusters-${digest.digest('hex').slice(0, 12)}`;
    },
    start: (timing, onChange) =>
      follow(hub, { namespace, log, clusterId, timing: { ...timing, hubObjects: objects } }, onChange),
    leaving: {
      isOurs: (labels) => labels[INVENTORY_LABEL] === clusterId,
      confirm: () => confirmSame(hub, clusterId),
      isDeleted: async (node) => {
        const { namespace: of, name } = clusterOfNode(node);
        return !(await hub.hasCluster(of, name));
      },
      reason: 'its Cluster or Secret was deleted',
      mayOutlive: true,
    },
    close: () => {
      objects.stop();
      return hub.close();
    },
  };
}

interface Following {
  readonly namespace: string | undefined;
  readonly log: Logger;
  readonly clusterId: string;
  readonly timing: Timing;
}

const HUB_USER = 'the user of the kubeconfig of the hub';

/** Follows Clusters and Secrets. Returns a function that stops it. */
function follow(
  hub: Kube,
  { namespace, log, clusterId, timing }: Following,
  onChange: (listing: Listing) => void,
): () => void {
  const api = hub.objects({ timeoutMs: CALL_TIMEOUT_MS, logger: log });
  const place = hubOf(api, timing.checkMs, (answers, reason) =>
    answers ? log.info({}, 'the hub answers again') : log.warn({ reason }, 'the hub does not answer; asking again'),
  );
  void place.reach.look();
  let before: ReadonlyMap<string, string> = new Map();
  const changed = new Soon(() => {
    const [clusters, own, credentials] = tables.map(({ objects }) => objects) as Tables;
    if (clusters === undefined || own === undefined || credentials === undefined) return;
    const serverIn = (text: string): string => hub.serverIn(text);
    const listing = clustersOf({ clusters, own, credentials, clusterId, serverIn, before });
    before = listing.servers;
    onChange({
      targets: [
        ...listing.clusters.map(({ unavailable, ...cluster }) => ({
          ...clusterTarget(cluster, timing, place),
          unavailable,
        })),
        ...listing.unusable.map((cluster) => ({
          ...clusterTarget({ ...cluster, kubeconfig: '' }, timing, place),
          unavailable: cluster.problem,
        })),
      ],
      problems: listing.problems,
      nodes: listing.nodes,
    });
  });
  const more = { onChange: () => changed.call(), logger: log };
  const tables = [
    hub.followHubClusters(namespace, more),
    hub.followOwnKubeconfigs(namespace, more),
    hub.followCredentials(namespace, more),
  ] as const;
  return () => {
    changed.stop();
    place.reach.stop();
    for (const table of tables) table.stop();
  };
}

type Tables = [
  ReturnType<Kube['followHubClusters']>['objects'],
  ReturnType<Kube['followOwnKubeconfigs']>['objects'],
  ReturnType<Kube['followCredentials']>['objects'],
];
