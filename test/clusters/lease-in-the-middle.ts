import type { FleetClient } from '#libs/client';
import { until, type LeanCluster } from '#libs/testing';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const DEPLOYMENT = '/apis/apps/v1/namespaces/default/deployments/web';
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';

/** A ConfigMap with this value, and a Deployment that the test makes ready, so that it can stop in the middle. */
export const contentOf = (selector: object, name: string, value: string): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name },
  spec: {
    nodeSelector: { matchLabels: selector },
    objects: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'default' }, data: { value } },
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'default' },
        spec: {
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ name: 'a', image: `a:${value}` }] },
          },
        },
      },
    ],
  },
});

interface Deployment {
  readonly metadata: { readonly generation: number };
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly [{ readonly image: string }] } };
  };
}

/** The Deployment has this image, and is not ready yet: the lease is in the middle. */
export async function untilInTheMiddle({ api }: LeanCluster, value: string): Promise<void> {
  await until(async () => {
    const found = (await api.get(DEPLOYMENT)) as Deployment | undefined;
    return found?.spec.template.spec.containers[0].image === `a:${value}`;
  }, 'the lease is in the middle');
}

/** Does what the controller of Deployments would do. */
export async function makeReady({ api }: LeanCluster): Promise<void> {
  const { metadata } = (await api.get(DEPLOYMENT)) as unknown as Deployment;
  const replicas = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
  const conditions = [
    { type: 'Available', status: 'True', reason: 'Test', message: '' },
    { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message: '' },
  ];
  await api.patch(`${DEPLOYMENT}/status`, {
    status: { observedGeneration: metadata.generation, ...replicas, conditions },
  });
}

/** Makes the Deployment ready whenever it is there and is not, until it is stopped. */
export function keepReady(cluster: LeanCluster): () => Promise<void> {
  let isOver = false;
  const done = (async (): Promise<void> => {
    while (!isOver) {
      await makeReady(cluster).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  return () => {
    isOver = true;
    return done;
  };
}

export async function valueIn({ api }: LeanCluster): Promise<string | undefined> {
  const found = await api.get(`${CONFIG_MAPS}/x`);
  return (found as { readonly data?: { readonly value: string } } | undefined)?.data?.value;
}

/** The versions of all that Sluice could have written. */
export async function versionsIn({ api }: LeanCluster): Promise<unknown> {
  const paths = [`${CONFIG_MAPS}/x`, `${CONFIG_MAPS}/sluice-applied`, DEPLOYMENT];
  const found = await Promise.all(paths.map((path) => api.get(path)));
  return found
    .map((one) => (one as { readonly metadata?: { readonly generation?: number; readonly uid: string } })?.metadata)
    .map(
      (metadata, i) =>
        metadata && [
          metadata.uid,
          i === 2 ? metadata.generation : (metadata as { readonly resourceVersion?: string }).resourceVersion,
        ],
    );
}

/** A service account that may do everything, until it is revoked. */
export async function credential(
  { api, ...cluster }: LeanCluster,
  name: string,
): Promise<{ readonly token: string; revoke(): Promise<void> }> {
  void cluster;
  await api.create(ACCOUNTS, { metadata: { name } });
  await api.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  });
  const { status } = await api.create(`${ACCOUNTS}/${name}/token`, { spec: {} });
  return {
    token: (status as { readonly token: string }).token,
    revoke: async () => void (await api.remove(`${ACCOUNTS}/${name}`)),
  };
}

/** How the leases of a node for a change ended, in order. */
export async function endsOf(client: FleetClient, node: string, change: string): Promise<readonly string[]> {
  const ends: string[] = [];
  const options = { subject: 'node.lease.settled.>', follow: false, signal: new AbortController().signal };
  for await (const { body } of client.events(options)) {
    const fact = body as {
      readonly node: string;
      readonly change: string;
      readonly because: string;
      readonly reason: string;
    };
    if (fact.node === node && fact.change === change) ends.push(`${fact.because}: ${fact.reason}`);
  }
  return ends;
}
