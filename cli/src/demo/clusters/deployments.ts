import type { KubeApi, KubeObject } from '#libs/api-servers';
import { BAD } from './scene.js';

const DEPLOYMENTS = '/apis/apps/v1/deployments';
const pathOf = (namespace: string, name: string): string => `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`;
const AGAIN_MS = 200;
/** Pods take a while to start. So it shows if two clusters change at once. */
const PODS_MS = 500;

interface Deployment extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly generation?: number };
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  };
  readonly status?: { readonly observedGeneration?: number; readonly readyReplicas?: number };
}

/** What happened to a Deployment. */
export type Event = 'changed' | 'ready';

/**
 * Plays the controllers and nodes of a cluster: sets the status of each Deployment as if its pods had started. Those of
 * one image never become ready.
 */
export class Deployments {
  /** The generation of each Deployment whose status is set. */
  private readonly done = new Map<string, number>();
  private stopWatch: () => void = () => undefined;
  private isStopped = false;

  constructor(
    private readonly api: KubeApi,
    private readonly onEvent: (event: Event) => void,
  ) {}

  start(): this {
    // Without a version, a watch begins with all objects.
    this.stopWatch = this.api.watch(
      `${DEPLOYMENTS}?watch=1`,
      (type, object) => {
        if (type !== 'DELETED') void this.take(object as Deployment);
      },
      () => {
        if (!this.isStopped) setTimeout(() => this.isStopped || this.start(), AGAIN_MS).unref();
      },
    );
    return this;
  }

  stop(): void {
    this.isStopped = true;
    this.stopWatch();
  }

  private async take(deployment: Deployment): Promise<void> {
    const { name, namespace = '', uid = '', generation = 0 } = deployment.metadata;
    if (this.done.get(uid) === generation) return;
    this.done.set(uid, generation);
    this.onEvent('changed');
    await new Promise((resolve) => setTimeout(resolve, PODS_MS));
    if (this.isStopped || this.done.get(uid) !== generation) return;
    const isReady = imageOf(deployment) !== BAD;
    // Before others can know it: so this comes before what they do then.
    if (isReady) this.onEvent('ready');
    try {
      await this.api.patch(`${pathOf(namespace, name)}/status`, { status: statusOf(deployment, isReady) }, 'demo');
    } catch {
      // It is gone, or the watch ends too and then begins with this object again.
      this.done.delete(uid);
    }
  }
}

/** What a cluster has, as `web:1, 2/2 ready`. Undefined without the Deployment. */
export async function deploymentText(api: KubeApi): Promise<string | undefined> {
  const found = (await api.get(pathOf('default', 'web'))) as Deployment | undefined;
  if (found === undefined) return undefined;
  return `${imageOf(found)}, ${found.status?.readyReplicas ?? 0}/${found.spec?.replicas ?? 1} ready`;
}

const imageOf = ({ spec }: Deployment): string => spec?.template?.spec.containers[0]?.image ?? '';

/** A new pod replaces an old one only once it is ready. */
function statusOf({ metadata, spec, status }: Deployment, isReady: boolean): object {
  const wanted = spec?.replicas ?? 1;
  const ready = isReady ? wanted : (status?.readyReplicas ?? 0);
  return {
    observedGeneration: metadata.generation,
    replicas: isReady ? wanted : wanted + 1,
    updatedReplicas: isReady ? wanted : 1,
    readyReplicas: ready,
    availableReplicas: ready,
    unavailableReplicas: isReady ? 0 : 1,
    conditions: [
      {
        type: 'Available',
        status: ready >= wanted ? 'True' : 'False',
        reason: ready >= wanted ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
        message: '',
      },
      {
        type: 'Progressing',
        status: 'True',
        reason: isReady ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
        message: '',
      },
    ],
  };
}
