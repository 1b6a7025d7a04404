import { describeOnClusters } from '#libs/testing';
import { SERVICES_BESIDE, startOtherScheduler } from '../e2e/other-scheduler.js';
import { ClusterFleet } from './cluster-fleet.js';

const configMap = (value: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'x', namespace: 'default' },
  data: { value, cluster: '{{ node.name }}' },
});
const objects = (...list: readonly object[]): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name: 'x' },
  spec: { nodeSelector: { matchLabels: { kind: 'cluster' } }, objects: list },
});

describeOnClusters('clusters, with the scheduler on the page about the protocol', 2, (lean) => {
  let fleet: ClusterFleet;
  beforeAll(async () => {
    fleet = await ClusterFleet.start(lean(), { services: SERVICES_BESIDE });
    await startOtherScheduler(fleet.processes, fleet.folder, fleet.server.url);
  });
  afterAll(() => fleet?.close());

  test.each(['1', '2'])('all clusters get change %s, and it is committed', async (value) => {
    const change = await fleet.apply(objects(configMap(value)));
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: 2 });
    for (const { name, cluster } of fleet.clusters)
      expect(await cluster.api.get('/api/v1/namespaces/default/configmaps/x')).toMatchObject({
        data: { value, cluster: name },
      });
  });

  test('the config that is assigned to a cluster can be read in `configs`', async () => {
    const leases = await fleet.client.list('leases');
    for (const { name } of fleet.clusters) {
      const config = await fleet.client.config(name, leases.get(name)?.hash ?? '');
      expect(config?.fragments).toMatchObject([
        { kind: 'KubeObjects', spec: { objects: [{ data: { cluster: name } }] } },
      ]);
    }
  });
});
