import type { Logger } from '#libs/runtime';
import { KubeConnection, type KubeOptions } from './connection.js';
import {
  applyStatus,
  customObjectOf,
  deleteObject,
  makeObject,
  writeFinalizers,
  type CustomObject,
  type ObjectOutcome,
  type RawCustomObject,
} from './custom-objects.js';
import { applyDefinition, lookAtDefinition, type DefinitionSeen, type WantedDefinition } from './definitions.js';
import { deletePod, evictPod, type EvictionOutcome, type RawBudget } from './eviction.js';
import { tellEvent, type ObjectEvent } from './events.js';
import { Follower } from './follower.js';
import {
  nodeOf,
  readNode,
  writeNode,
  type KubeNode,
  type NodeChange,
  type RawNode,
  type WriteOutcome,
} from './nodes.js';
import { readSchemas, type PublishedSchemas } from './published-schemas.js';
import { podsOn, podsQuery, type KubePod } from './pods.js';
import type { RawList } from './objects.js';
import type { Right } from './rights.js';

/** What Sluice does with an API server. Nothing here is cached: whoever decides reads what is there now. */
export class Kube {
  private constructor(private readonly connection: KubeConnection) {}

  /** Loads the client and reads the kubeconfig. Throws KubeConfigError. */
  static async open(options: KubeOptions = {}): Promise<Kube> {
    return new Kube(await KubeConnection.open(options));
  }

  get server(): string {
    return this.connection.server;
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  /** Asks for nothing but an answer. */
  async version(): Promise<string> {
    return ((await this.connection.get('/version')) as { readonly gitVersion?: string }).gitVersion ?? '';
  }

  /** As `kubectl auth can-i`. */
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

  lookAtDefinition(wanted: WantedDefinition): Promise<DefinitionSeen> {
    return lookAtDefinition(this.connection, wanted);
  }

  applyDefinition(wanted: WantedDefinition, version: string, signal: AbortSignal): Promise<void> {
    return applyDefinition(this.connection, wanted, version, signal);
  }

  /** The names of the Nodes, up to so many, in order. */
  async nodeNames(most: number): Promise<readonly string[]> {
    const { items = [] } = (await this.connection.get(`/api/v1/nodes?limit=${most}`)) as RawList<RawNode>;
    return items.map(({ metadata }) => metadata?.name ?? '');
  }

  node(name: string): Promise<KubeNode | undefined> {
    return readNode(this.connection, name);
  }

  /** Changes a Node if it still is as it was read. */
  writeNode(read: KubeNode, change: NodeChange): Promise<WriteOutcome> {
    return writeNode(this.connection, read, change);
  }

  podsOn(node: string): Promise<readonly KubePod[]> {
    return podsOn(this.connection, node);
  }

  evict(pod: KubePod, graceSeconds?: number): Promise<EvictionOutcome> {
    return evictPod(this.connection, pod, graceSeconds);
  }

  /** Ends a pod whatever budgets say. */
  delete(pod: KubePod, graceSeconds?: number): Promise<'accepted' | 'gone'> {
    return deletePod(this.connection, pod, graceSeconds);
  }

  /** Calls back whenever something of a node or of the pods on it may have changed; returns how to stop that. */
  onChange(node: string, changed: () => void, logger?: Logger): () => void {
    const told = {
      pick: () => undefined,
      listed: changed,
      heard: changed,
      ...(logger === undefined ? {} : { logger }),
    };
    const followers = [
      new Follower({
        connection: this.connection,
        path: '/api/v1/nodes',
        query: `fieldSelector=${encodeURIComponent(`metadata.name=${node}`)}`,
        ...told,
      }),
      new Follower({ connection: this.connection, path: '/api/v1/pods', query: podsQuery(node), ...told }),
    ];
    for (const follower of followers) follower.start();
    return () => followers.forEach((follower) => follower.stop());
  }

  /** Calls back with the name of a budget (namespace/name) whenever it allows something, or is gone; returns how to stop that. */
  onFreed(freed: (budget: string) => void, logger?: Logger): () => void {
    const nameOf = ({ metadata }: RawBudget): string => `${metadata?.namespace}/${metadata?.name}`;
    const follower = new Follower<RawBudget, RawBudget>({
      pick: (budget) => budget,
      connection: this.connection,
      path: '/apis/policy/v1/poddisruptionbudgets',
      ...(logger === undefined ? {} : { logger }),
      listed: (all) =>
        all.filter(({ status }) => (status?.disruptionsAllowed ?? 0) > 0).forEach((budget) => freed(nameOf(budget))),
      heard: (event, budget) =>
        (event === 'deleted' || (budget.status?.disruptionsAllowed ?? 0) > 0) && freed(nameOf(budget)),
    });
    follower.start();
    return () => follower.stop();
  }

  /** Follows all Nodes, of each of which `pick` says what to keep; returns how to stop that. */
  followNodes<K>(following: NodesFollowing<K>, logger?: Logger): () => void {
    const { pick, listed, heard } = following;
    const follower = new Follower<RawNode, readonly [string, K]>({
      connection: this.connection,
      path: '/api/v1/nodes',
      ...(logger === undefined ? {} : { logger }),
      pick: (raw) => [raw.metadata?.name ?? '', pick(nodeOf(raw))],
      listed: (all) => listed(new Map(all)),
      heard: (event, raw) => heard(raw.metadata?.name ?? '', event === 'deleted' ? undefined : pick(nodeOf(raw))),
    });
    follower.start();
    return () => follower.stop();
  }

  /** Follows all objects of a kind, whose collection has that path; returns how to stop that. */
  followObjects(
    path: string,
    listed: (objects: readonly CustomObject[]) => void,
    heard: (event: 'set' | 'deleted', object: CustomObject) => void,
    logger?: Logger,
  ): () => void {
    const follower = new Follower<RawCustomObject, CustomObject>({
      connection: this.connection,
      path,
      pick: customObjectOf,
      listed,
      heard: (event, raw) => heard(event, customObjectOf(raw)),
      ...(logger === undefined ? {} : { logger }),
    });
    follower.start();
    return () => follower.stop();
  }

  writeFinalizers(
    path: string,
    read: Pick<CustomObject, 'uid' | 'revision'>,
    finalizers: readonly string[],
    manager: string,
  ): Promise<ObjectOutcome> {
    return writeFinalizers(this.connection, path, read, finalizers, manager);
  }

  applyStatus(path: string, body: Parameters<typeof applyStatus>[2], manager: string): Promise<ObjectOutcome> {
    return applyStatus(this.connection, path, body, manager);
  }

  makeObject(collection: string, body: object, manager: string): Promise<ObjectOutcome> {
    return makeObject(this.connection, collection, body, manager);
  }

  readSchemas(group: string, version: string, before: string): Promise<PublishedSchemas> {
    return readSchemas(this.connection, group, version, before);
  }

  tellEvent(event: ObjectEvent, manager: string): Promise<void> {
    return tellEvent(this.connection, event, manager);
  }

  deleteObject(path: string, uid: string): Promise<void> {
    return deleteObject(this.connection, path, uid);
  }
}

export interface NodesFollowing<K> {
  readonly pick: (node: KubeNode) => K;
  /** All that there are, by name. */
  readonly listed: (nodes: ReadonlyMap<string, K>) => void;
  /** One was written, or is gone. */
  readonly heard: (name: string, node: K | undefined) => void;
}
