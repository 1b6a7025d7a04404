import { KubeCluster, Kubelet, KubeScene, whyNoKube, type KubeApi } from '#libs/testing';
import { SkipError, type PartContext } from './part.js';
import { until } from './processes.js';

export interface KubeWorld {
  readonly cluster: KubeCluster;
  readonly api: KubeApi;
  readonly scene: KubeScene;
}

/** A real API server, with a replacement for the kubelets whose pods end after this time. */
export async function startKube(context: PartContext, endsAfterMs: number): Promise<KubeWorld> {
  const why = whyNoKube();
  if (why !== undefined) throw new SkipError(why);
  const cluster = await KubeCluster.start();
  context.atEnd(() => cluster.stop());
  const kubelet = new Kubelet(cluster.api, { endsAfterMs }).start();
  context.atEnd(() => kubelet.stop());
  return { cluster, api: cluster.api, scene: new KubeScene(cluster.api) };
}

/** Runs something for each item, with a limit on how many run at once. */
export async function eachAtOnce<T>(
  items: readonly T[],
  atOnce: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items];
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let item = left.shift(); item !== undefined; item = left.shift()) await act(item);
    }),
  );
}

/** Creates this many pods on each node, like a ReplicaSet. Resolves when all run. */
export async function populate(
  { api }: KubeWorld,
  nodes: readonly string[],
  podsEach: number,
  graceSeconds: number,
): Promise<void> {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: 'owner',
    uid: '00000000-0000-4000-8000-000000000000',
    controller: true,
    blockOwnerDeletion: false,
  };
  await eachAtOnce(nodes, 16, async (node) => {
    for (let i = 0; i < podsEach; i += 1) {
      await api.create('/api/v1/namespaces/default/pods', {
        metadata: { name: `${node}-p${i}`, labels: { app: node }, ownerReferences: [owner] },
        spec: {
          nodeName: node,
          terminationGracePeriodSeconds: graceSeconds,
          tolerations: [{ operator: 'Exists' }],
          containers: [{ name: 'c', image: 'x' }],
        },
      });
    }
  });
  await until(
    'all pods to run',
    async () =>
      (await api.list('/api/v1/pods?fieldSelector=status.phase%3DRunning')).length === nodes.length * podsEach
        ? true
        : undefined,
    300_000,
    500,
  );
}
