/** One cluster at a time, and drift is repaired. Two thirds of the time are for a change, the rest for its rollback. */
export const poolChange = (): object => ({
  message: 'One cluster at a time',
  author: 'demo',
  apply: [manifest('Pool', 'clusters', { maxUnavailable: 1, applyTimeout: '30s', drift: 'repair' })],
});

/** A ConfigMap and a Deployment for every cluster. */
export const moduleChange = (image: string): object => ({
  message: `The module ${image}`,
  author: 'demo',
  apply: [
    manifest('KubeObjects', 'web', {
      objects: [
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'web', namespace: 'default' },
          data: { greeting: 'hello from {{ node.name }}' },
        },
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'web', namespace: 'default' },
          spec: {
            replicas: 2,
            selector: { matchLabels: { app: 'web' } },
            template: {
              metadata: { labels: { app: 'web' } },
              spec: { containers: [{ name: 'web', image }] },
            },
          },
        },
      ],
    }),
  ],
});

export const GOOD = 'web:1';
/** Its pods never become ready. */
export const BAD = 'web:2';

const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { nodeSelector: { matchLabels: { kind: 'cluster' } }, ...spec },
});
