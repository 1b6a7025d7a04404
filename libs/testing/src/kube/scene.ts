import type { KubeApi, KubeObject } from '#libs/api-servers';
import { until } from '../until.js';

/** The fields of a pod that a test sets. The rest is as for a pod that a ReplicaSet made. */
export interface PodFields {
  readonly node: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** The kind of its controller; empty for none. */
  readonly by?: string;
  readonly emptyDir?: boolean;
  /** The extended resources that it requests. */
  readonly resources?: readonly string[];
  readonly graceSeconds?: number;
}

const PODS = '/api/v1/namespaces';
export const podPath = (name: string, namespace = 'default'): string => `${PODS}/${namespace}/pods/${name}`;
export const nodePath = (name: string): string => `/api/v1/nodes/${name}`;

/** Creates and reads the nodes, pods and budgets of an API server, for tests. */
export class KubeScene {
  constructor(readonly api: KubeApi) {}

  /** With a label, like a kubelet: without any label, the API server would not track who sets which labels. */
  async node(name: string, labels: Readonly<Record<string, string>> = {}, ready = true): Promise<KubeObject> {
    return this.api.create('/api/v1/nodes', {
      metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
      status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    });
  }

  /** Creates a pod on a node. Resolves when it runs, because a budget counts it only then. */
  async pod(name: string, fields: PodFields): Promise<KubeObject> {
    const {
      node,
      namespace = 'default',
      labels = {},
      annotations = {},
      by = 'ReplicaSet',
      emptyDir = false,
      resources = [],
      graceSeconds = 30,
    } = fields;
    const controller = {
      apiVersion: 'apps/v1',
      kind: by,
      name: 'owner',
      uid: '00000000-0000-4000-8000-000000000000',
      controller: true,
      blockOwnerDeletion: false,
    };
    const limits = Object.fromEntries(resources.map((resource) => [resource, '1']));
    await this.api.create(`${PODS}/${namespace}/pods`, {
      metadata: { name, labels, annotations, ...(by === '' ? {} : { ownerReferences: [controller] }) },
      spec: {
        nodeName: node,
        terminationGracePeriodSeconds: graceSeconds,
        tolerations: [{ operator: 'Exists' }],
        containers: [
          { name: 'c', image: 'x', ...(resources.length === 0 ? {} : { resources: { requests: limits, limits } }) },
        ],
        ...(emptyDir ? { volumes: [{ name: 'scratch', emptyDir: {} }] } : {}),
      },
    });
    return until(async () => {
      const pod = await this.api.get(podPath(name, namespace));
      return pod?.status?.['phase'] === 'Running' ? pod : undefined;
    }, `pod ${name} runs`);
  }

  /**
   * A budget for the pods with label `app`. Resolves when the controller has counted them. (`maxUnavailable` would need
   * the pods' owners to exist.)
   */
  async budget(name: string, app: string, allowed = 0, minAvailable = 1): Promise<void> {
    const path = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    await this.api.create(path, { metadata: { name }, spec: { minAvailable, selector: { matchLabels: { app } } } });
    await until(async () => {
      const status = (await this.api.get(`${path}/${name}`))?.status;
      return (
        status !== undefined && status['observedGeneration'] !== undefined && status['disruptionsAllowed'] === allowed
      );
    }, `the budget ${name} allows ${allowed}`);
  }

  removeBudget(name: string): Promise<void> {
    return this.api.remove(`/apis/policy/v1/namespaces/default/poddisruptionbudgets/${name}`);
  }

  /** The names of the pods on a node that are not terminating, in order. */
  async podsOn(node: string): Promise<readonly string[]> {
    const pods = await this.api.list(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`);
    return pods
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  async isCordoned(node: string): Promise<boolean> {
    return (await this.api.get(nodePath(node)))?.spec?.['unschedulable'] === true;
  }

  /** Like `kubectl cordon` and `kubectl uncordon`. */
  cordon(node: string): Promise<KubeObject> {
    return this.api.patch(nodePath(node), { spec: { unschedulable: true } });
  }
  uncordon(node: string): Promise<KubeObject> {
    return this.api.patch(nodePath(node), { spec: { unschedulable: null } });
  }
}
