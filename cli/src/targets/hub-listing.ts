import { isNodeName, LABEL_VALUE } from '#libs/contracts';
import { CREDENTIAL_LABEL, type HubCluster, type KubeSecret } from '#libs/kube';
import type { HubOwner, OnHub } from '../../../services/applier/src/shell/targets/index.js';
import { INVENTORY_LABEL, NAMESPACE_LABEL, type ExistingNode, type InventoryProblem } from './inventory.js';

/** The annotation of a Cluster that names the Secret with the kubeconfig to use. */
export const SECRET_ANNOTATION = 'sluice.dev/kubeconfig-secret';
/** Where a Secret has the kubeconfig: as Cluster API writes it, or as `kubectl create secret --from-file` does. */
const KEYS = ['value', 'kubeconfig'];

export interface HubState {
  readonly clusters: ReadonlyMap<string, HubCluster>;
  /** The Secrets that Cluster API made, and those for Sluice, by `namespace/name`. */
  readonly own: ReadonlyMap<string, KubeSecret>;
  readonly credentials: ReadonlyMap<string, KubeSecret>;
  readonly clusterId: string;
  /** The URL of the API server in a kubeconfig. Throws an error with the reason if it cannot be used. */
  readonly serverIn: (kubeconfig: string) => string;
  /** Which node had the kubeconfig of each API server before. */
  readonly before: ReadonlyMap<string, string>;
}

/** A cluster that can be served. */
export interface ListedCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly kubeconfig: string;
  readonly onHub: OnHub;
  readonly unavailable: string | undefined;
}

/** A cluster whose kubeconfig must not be used. It was perhaps served before, and must end what was begun there. */
export interface UnusableCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly problem: string;
}

export interface HubListing {
  readonly clusters: readonly ListedCluster[];
  readonly unusable: readonly UnusableCluster[];
  readonly problems: readonly InventoryProblem[];
  readonly nodes: ReadonlyMap<string, ExistingNode>;
  /** Which node has the kubeconfig of each API server. */
  readonly servers: ReadonlyMap<string, string>;
}

interface Candidate extends ListedCluster {
  readonly object: string;
  readonly server: string;
}

/** The clusters that a hub knows: Clusters of Cluster API, and Secrets with a kubeconfig. */
export function clustersOf(hub: HubState): HubListing {
  const problems: InventoryProblem[] = [];
  const nodes = new Map<string, ExistingNode>();
  const candidates: Candidate[] = [];
  const unusable: UnusableCluster[] = [];
  const list = (found: Found): void => {
    const { object, node } = found;
    const problem = (reason: string, todo: string): void => void problems.push({ object, reason, todo });
    if (!isNodeName(node)) return problem(`${node} cannot be the name of a node`, 'use a shorter name, in lower case');
    // Cluster API deletes the cluster with its object. A Secret is only a way into it.
    nodes.set(node, { isReplaced: true, outlives: found.owner.kind === 'Secret' });
    if (found.secret === undefined) return;
    const { secret, namespace, cluster } = found;
    const key = KEYS.find((one) => (secret.data[one] ?? '').trim() !== '') ?? '';
    const kubeconfig = secret.data[key];
    const where = `Secret ${secret.name}`;
    // So that bindings can name its object.
    const own: Readonly<Record<string, string>> = LABEL_VALUE.test(cluster) ? { [CREDENTIAL_LABEL]: cluster } : {};
    const labels = { ...found.labels, ...own, [INVENTORY_LABEL]: hub.clusterId, [NAMESPACE_LABEL]: namespace };
    const refuse = (reason: string, todo: string): void => {
      problem(reason, todo);
      unusable.push({ name: node, labels, problem: reason });
    };
    if (kubeconfig === undefined)
      return refuse(`the ${where} has no key ${KEYS.join(' or ')}, or it is empty`, 'put a kubeconfig there');
    try {
      const server = hub.serverIn(kubeconfig);
      const { name } = clusterOfNode(node);
      const onHub = { namespace, name, secret: { name: secret.name, key }, owner: found.owner };
      candidates.push({ name: node, labels, kubeconfig, onHub, unavailable: found.unready, object, server });
    } catch (error) {
      refuse(`the kubeconfig in the ${where} cannot be used: ${(error as Error).message}`, `correct the ${where}`);
    }
  };
  for (const cluster of [...hub.clusters.values()].sort(byName)) list(ofCluster(cluster, hub, problems));
  for (const found of ofSecrets(hub, problems)) list(found);
  const { clusters, servers } = withOwnServers(candidates, hub.before, { problems, unusable });
  return { clusters, unusable, problems, nodes, servers };
}

/** What may become a node. Without a Secret, it is waited for. */
interface Found {
  readonly object: string;
  readonly node: string;
  readonly cluster: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly unready: string | undefined;
  readonly secret: KubeSecret | undefined;
  readonly owner: HubOwner;
}

export const nodeOfCluster = (namespace: string, name: string): string => `${name}.${namespace}`;

/** A namespace has no dots. */
export function clusterOfNode(node: string): { readonly namespace: string; readonly name: string } {
  const dot = node.lastIndexOf('.');
  return { name: node.slice(0, dot), namespace: node.slice(dot + 1) };
}

/** Its own credential comes first; the Secret of Cluster API is the quick start. */
function ofCluster(cluster: HubCluster, { own, credentials }: HubState, problems: InventoryProblem[]): Found {
  const { namespace, name, uid, apiVersion, labels, annotations, unready } = cluster;
  const object = `Cluster ${namespace}/${name}`;
  const reference = annotations[SECRET_ANNOTATION];
  const secret =
    reference === undefined ? own.get(`${namespace}/${name}-kubeconfig`) : credentials.get(`${namespace}/${reference}`);
  if (reference !== undefined && secret?.labels[CREDENTIAL_LABEL] !== name)
    problems.push({
      object,
      reason: `its annotation ${SECRET_ANNOTATION} names the Secret ${reference}, which does not exist with the label ${CREDENTIAL_LABEL}=${name}`,
      todo: 'create the Secret, or label it',
    });
  if (reference === undefined && secret === undefined && unready === undefined)
    problems.push({
      object,
      reason: `there is no Secret ${name}-kubeconfig, and the annotation ${SECRET_ANNOTATION} names no other`,
      todo: 'wait for Cluster API to create it, or annotate the Cluster',
    });
  for (const other of [...credentials.values()].sort(byAge))
    if (other.namespace === namespace && other.labels[CREDENTIAL_LABEL] === name && other.name !== reference)
      problems.push(secondSecret(other, name, secret?.name ?? 'none'));
  const isRight = reference === undefined || secret?.labels[CREDENTIAL_LABEL] === name;
  return {
    object,
    node: nodeOfCluster(namespace, name),
    cluster: name,
    namespace,
    labels,
    unready,
    secret: isRight ? secret : undefined,
    owner: { apiVersion, kind: 'Cluster', name, uid },
  };
}

/** Secrets for clusters that have no Cluster object. Of two, the older one is used. */
function ofSecrets({ clusters, credentials }: HubState, problems: InventoryProblem[]): readonly Found[] {
  const first = new Map<string, KubeSecret>();
  for (const secret of [...credentials.values()].sort(byAge)) {
    const { namespace, labels } = secret;
    const name = labels[CREDENTIAL_LABEL] ?? '';
    if (clusters.has(`${namespace}/${name}`)) continue;
    const used = first.get(`${namespace}/${name}`);
    if (used === undefined) first.set(`${namespace}/${name}`, secret);
    else problems.push(secondSecret(secret, name, used.name));
  }
  return [...first.values()].map((secret) => ({
    object: `Secret ${secret.namespace}/${secret.name}`,
    node: nodeOfCluster(secret.namespace, secret.labels[CREDENTIAL_LABEL] ?? ''),
    cluster: secret.labels[CREDENTIAL_LABEL] ?? '',
    namespace: secret.namespace,
    labels: secret.labels,
    unready: undefined,
    secret,
    owner: { apiVersion: 'v1', kind: 'Secret', name: secret.name, uid: secret.uid },
  }));
}

const secondSecret = ({ namespace, name }: KubeSecret, cluster: string, used: string): InventoryProblem => ({
  object: `Secret ${namespace}/${name}`,
  reason: `it is a second Secret for the cluster ${cluster}, which uses ${used}`,
  todo: `delete one of them, or name the right one in the annotation ${SECRET_ANNOTATION} of the Cluster`,
});

/**
 * Two nodes must not be one cluster: each would undo what the other does. The one that had the API server before keeps
 * it. If none had, it is not known which kubeconfig is wrong, and neither is served.
 */
function withOwnServers(
  candidates: readonly Candidate[],
  before: ReadonlyMap<string, string>,
  { problems, unusable }: { readonly problems: InventoryProblem[]; readonly unusable: UnusableCluster[] },
): { readonly clusters: readonly ListedCluster[]; readonly servers: ReadonlyMap<string, string> } {
  const clusters: ListedCluster[] = [];
  const servers = new Map<string, string>();
  for (const [server, all] of Map.groupBy(candidates, (one) => one.server)) {
    const keeper = all.length === 1 ? all[0] : all.find(({ name }) => name === before.get(server));
    if (keeper !== undefined) {
      servers.set(server, keeper.name);
      const { object: _, server: __, ...cluster } = keeper;
      clusters.push(cluster);
    }
    for (const { object, name, labels } of all.filter((one) => one !== keeper)) {
      const others = all.filter((other) => other.name !== name).map((other) => other.object);
      const reason = `its kubeconfig is for the API server ${server}, as that of ${others.join(', ')}`;
      problems.push({
        object,
        reason,
        todo: 'correct the kubeconfig that is for another cluster, or delete one of them',
      });
      unusable.push({ name, labels, problem: reason });
    }
  }
  return { clusters, servers };
}

const byName = (one: HubCluster, other: HubCluster): number =>
  nodeOfCluster(one.namespace, one.name) < nodeOfCluster(other.namespace, other.name) ? -1 : 1;

function byAge(one: KubeSecret, other: KubeSecret): number {
  const [a, b] = [one, other].map(({ created, namespace, name }) => `${created} ${namespace}/${name}`);
  return (a as string) < (b as string) ? -1 : 1;
}
