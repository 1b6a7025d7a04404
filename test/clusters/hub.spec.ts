import { describeOnClusters, until, type LeanCluster } from '#libs/testing';
import { CLUSTERS, HubFleet } from './hub-fleet.js';

const config = (value: string): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name: 'x' },
  spec: {
    nodeSelector: { matchLabels: { kind: 'cluster' } },
    objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'default' }, data: { value } }],
  },
});
const wrongToken = (cluster: LeanCluster): string => cluster.kubeconfig({ token: 'revoked' });

describeOnClusters('the clusters of a hub', 3, (lean) => {
  let fleet: HubFleet;
  let one: LeanCluster;
  let two: LeanCluster;
  beforeAll(async () => {
    const [hub, ...others] = lean() as [LeanCluster, LeanCluster, LeanCluster];
    [one, two] = others;
    fleet = await HubFleet.start(hub);
  });
  afterAll(() => fleet?.close());

  const has = (cluster: LeanCluster, value: string): Promise<unknown> =>
    until(async () => {
      const found = await cluster.api.get('/api/v1/namespaces/default/configmaps/x');
      return (found as { readonly data?: { readonly value?: string } } | undefined)?.data?.value === value;
    }, `it has ${value}`);

  test('a Secret with a kubeconfig is a cluster, also without Cluster API', async () => {
    await fleet.secret('plain', one.kubeconfig(), { 'sluice.dev/cluster': 'one', kind: 'cluster' });
    await fleet.untilNodes({ 'one.fleet': 'ready' });
    expect(await fleet.apply(config('1'))).toMatchObject({ code: 0 });
    await has(one, '1');
  });

  test('a Cluster joins once its control plane is ready and its Secret exists', async () => {
    await fleet.install();
    await fleet.cluster('two');
    await fleet.own('two', two.kubeconfig());
    await fleet.cluster('three');
    await fleet.ready('three');
    await fleet.untilDoctor('Cluster fleet/three is not served: there is no Secret three-kubeconfig');
    await fleet.untilNodes({ 'one.fleet': 'ready' });
    await fleet.ready('two');
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'ready' });
    await has(two, '1');
    await fleet.remove(`${CLUSTERS}/three`);
  });

  test('a Cluster whose control plane is lost is silent, skipped, and picked up later', async () => {
    await fleet.ready('two', false);
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'silent' });
    expect(await fleet.apply(config('2'))).toMatchObject({ code: 0 });
    await has(one, '2');
    await has(two, '1');
    await fleet.ready('two');
    await has(two, '2');
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'ready' });
  });

  test('a replaced kubeconfig takes effect, also after one that is broken or revoked', async () => {
    await fleet.replace('two-kubeconfig', 'nonsense: [');
    await fleet.untilDoctor(
      'Cluster fleet/two is not served: the kubeconfig in the Secret two-kubeconfig cannot be used',
    );
    await fleet.replace('two-kubeconfig', wrongToken(two));
    await fleet.untilDoctor('Cluster fleet/two is not served', false);
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'silent' });
    expect(await fleet.apply(config('3'))).toMatchObject({ code: 0 });
    await has(two, '2');
    await fleet.replace('two-kubeconfig', two.kubeconfig());
    await has(two, '3');
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'ready' });
  });

  test('a second Secret, and a kubeconfig for the API server of another cluster, are named and not used', async () => {
    await fleet.secret('again', two.kubeconfig(), { 'sluice.dev/cluster': 'one' });
    await fleet.secret('copied', one.kubeconfig(), { 'sluice.dev/cluster': 'four' });
    await fleet.untilDoctor(
      'Secret fleet/again is not served: it is a second Secret for the cluster one, which uses plain',
    );
    await fleet.untilDoctor('Secret fleet/copied is not served: its kubeconfig is for the API server');
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'ready' });
    for (const name of ['again', 'copied']) await fleet.removeSecret(name);
    await fleet.untilDoctor('is not served', false);
  });

  test('deleting a Cluster or a Secret removes its node', async () => {
    await fleet.remove(`${CLUSTERS}/two`);
    await fleet.removeSecret('plain');
    await fleet.untilNodes({});
    expect(fleet.log).not.toMatch(/the permission to .* is missing/);
  });
});
