import type { V1Node } from '@kubernetes/client-node';
import type { Logger } from '#libs/process';
import { ClusterApi } from './cluster/cluster-api.js';
import { KubeConnection, type KubeOptions } from './connection.js';
import {
  applyStatus,
  customObjectOf,
  deleteObject,
  makeObject,
  writeFinalizers,
  type CustomObject,
  type RawCustomObject,
} from './custom-objects.js';
import { applyDefinition, lookAtDefinition, readSchemas } from './definitions.js';
import { deletePod, evictPod, type RawBudget } from './eviction.js';
import { tellEvent } from './events.js';
import { Follower, type FollowerOptions } from './follower.js';
import { followCredentials, followHubClusters, followOwnKubeconfigs, hasCluster } from './hub-clusters.js';
import { nodeOf, readNode, writeNode, type KubeNode } from './nodes.js';
import type { RawList, RawObject } from './objects.js';
import { readPausable, writePausable } from './pausables.js';
import { followPodReplicas, readPodReplica, tryPodChoice } from './pod-replicas.js';
import { podsOn, podsQuery } from './pods.js';
import type { Right } from './request-rights.js';
import { followSecret } from './secrets.js';

/** What Sluice does with an API server. Nothing is cached: a decision reads the current state. */
export class Kube {
  private readonly with =
    <A extends readonly unknown[], R>(act: (connection: KubeConnection, ...args: A) => R) =>
    (...args: A): R =>
      act(this.connection, ...args);

  readonly lookAtDefinition = this.with(lookAtDefinition);
  readonly applyDefinition = this.with(applyDefinition);
  readonly readSchemas = this.with(readSchemas);
  readonly node = this.with(readNode);
  readonly writeNode = this.with(writeNode);
  readonly pausable = this.with(readPausable);
  readonly writePausable = this.with(writePausable);
  readonly podsOn = this.with(podsOn);
  readonly evict = this.with(evictPod);
  readonly delete = this.with(deletePod);
  readonly writeFinalizers = this.with(writeFinalizers);
  readonly applyStatus = this.with(applyStatus);
  readonly makeObject = this.with(makeObject);
  readonly deleteObject = this.with(deleteObject);
  readonly tellEvent = this.with(tellEvent);
  readonly followPodReplicas = this.with(followPodReplicas);
  readonly tryPodChoice = this.with(tryPodChoice);
  readonly podReplica = this.with(readPodReplica);
  readonly followSecret = this.with(followSecret);
  readonly followHubClusters = this.with(followHubClusters);
  readonly followOwnKubeconfigs = this.with(followOwnKubeconfigs);
  readonly followCredentials = this.with(followCredentials);
  readonly hasCluster = this.with(hasCluster);

  private constructor(private readonly connection: KubeConnection) {}

  /** Loads the client and reads the kubeconfig. Throws KubeConfigError. */
  static async open(options: KubeOptions = {}): Promise<Kube> {
    return new Kube(await KubeConnection.open(options));
  }

  /** All kinds of objects there, through this connection. */
  objects(options: { readonly timeoutMs: number; readonly logger: Logger }): ClusterApi {
    return ClusterApi.over(this.connection, options);
  }

  get server(): string {
    return this.connection.server;
  }

  /** The URL of the API server in a kubeconfig for another cluster. Throws KubeConfigError. */
  serverIn(kubeconfig: string): string {
    return this.connection.serverIn(kubeconfig);
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  async version(): Promise<string> {
    return ((await this.connection.get('/version')) as { readonly gitVersion?: string }).gitVersion ?? '';
  }

  /** What identifies a cluster, whatever the address of its API server: the uid of the namespace `kube-system`. */
  async clusterId(): Promise<string> {
    return ((await this.connection.get('/api/v1/namespaces/kube-system')) as RawObject).metadata?.uid ?? '';
  }

  /** Like `kubectl auth can-i`. */
  async may({ verb, group, resource, namespace }: Right): Promise<boolean> {
    const [name, subresource = ''] = resource.split('/');
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, group, resource: name, subresource, namespace } },
    };
    const { status } = (await this.connection.ask({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      body,
    })) as { readonly status?: { readonly allowed?: boolean } };
    return status?.allowed === true;
  }

  /** Whether another user has a right, as the API server decides it. `name`: of the object; empty for all objects. */
  async mayUser(
    user: string,
    groups: readonly string[],
    { verb, group, resource, namespace, name }: Right & { readonly name: string },
  ): Promise<boolean> {
    const [whole, subresource = ''] = resource.split('/');
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups, resourceAttributes: { verb, group, resource: whole, subresource, namespace, name } },
    };
    const { status } = (await this.connection.ask({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      body,
    })) as { readonly status?: { readonly allowed?: boolean } };
    return status?.allowed === true;
  }

  /** The names of the Nodes, in order, at most `most`. */
  async nodeNames(most: number): Promise<readonly string[]> {
    const { items = [] } = (await this.connection.get(`/api/v1/nodes?limit=${most}`)) as RawList<V1Node>;
    return items.map(({ metadata }) => metadata?.name ?? '');
  }

  /** Calls back whenever a node or one of its pods may have changed. Returns a function that stops it. */
  onChange(node: string, changed: () => void, logger?: Logger): () => void {
    const listener = { pick: () => undefined, onList: changed, onEvent: changed, logger };
    const query = `fieldSelector=${encodeURIComponent(`metadata.name=${node}`)}`;
    const stops = [
      this.follow({ path: '/api/v1/nodes', query, ...listener }),
      this.follow({ path: '/api/v1/pods', query: podsQuery(node), ...listener }),
    ];
    return () => stops.forEach((stop) => stop());
  }

  /** Calls back with each budget (namespace/name) that allows evictions or is gone. Returns a function to stop it. */
  onFreed(freed: (budget: string) => void, logger?: Logger): () => void {
    const allows = ({ status }: RawBudget): boolean => (status?.disruptionsAllowed ?? 0) > 0;
    const tell = ({ metadata }: RawBudget): void => freed(`${metadata?.namespace}/${metadata?.name}`);
    return this.follow<RawBudget, RawBudget>({
      path: '/apis/policy/v1/poddisruptionbudgets',
      logger,
      pick: (budget) => budget,
      onList: (all) => all.filter(allows).forEach(tell),
      onEvent: (event, budget) => (event === 'deleted' || allows(budget)) && tell(budget),
    });
  }

  /** Follows all Nodes; `pick` says what to keep of each. Returns a function that stops it. */
  followNodes<K>({ pick, onList, onEvent }: NodeListener<K>, logger?: Logger): () => void {
    return this.follow<V1Node, readonly [string, K]>({
      path: '/api/v1/nodes',
      logger,
      pick: (raw) => [raw.metadata?.name ?? '', pick(nodeOf(raw))],
      onList: (all) => onList(new Map(all)),
      onEvent: (event, raw) => onEvent(raw.metadata?.name ?? '', event === 'deleted' ? undefined : pick(nodeOf(raw))),
    });
  }

  /** Follows all objects of the collection at that path. Returns a function that stops it. */
  followObjects(
    path: string,
    onList: (objects: readonly CustomObject[]) => void,
    onEvent: (event: 'set' | 'deleted', object: CustomObject) => void,
    logger?: Logger,
  ): () => void {
    return this.follow<RawCustomObject, CustomObject>({
      path,
      logger,
      pick: customObjectOf,
      onList,
      onEvent: (event, raw) => onEvent(event, customObjectOf(raw)),
    });
  }

  private follow<T extends RawObject, K>(following: Omit<FollowerOptions<T, K>, 'connection'>): () => void {
    const follower = new Follower<T, K>({ ...following, connection: this.connection }).start();
    return () => follower.stop();
  }
}

export interface NodeListener<K> {
  readonly pick: (node: KubeNode) => K;
  /** Called with all Nodes, by name. */
  readonly onList: (nodes: ReadonlyMap<string, K>) => void;
  /** Called when a Node was written, or with undefined when it is gone. */
  readonly onEvent: (name: string, node: K | undefined) => void;
}
