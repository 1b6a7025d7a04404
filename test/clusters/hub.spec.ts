import { describeOnClusters, establish, FLUX_DEFINITIONS, until, type LeanCluster } from '#libs/testing';
import { commit, FluxRole, sync } from '../../services/applier/src/shell/clusters/flux.fixture.js';
import { CLUSTERS, HubFleet } from './hub-fleet.js';

const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec,
});
const config = (value: string): object =>
  manifest('KubeObjects', 'x', {
    nodeSelector: { matchLabels: { kind: 'cluster' } },
    objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'default' }, data: { value } }],
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

  test('a FluxSync on the hub needs the documented rights, and is for the cluster of its Secret', async () => {
    const onHub = (digit: string): object => {
      const spec = { ...sync(digit).spec, namespace: undefined, placement: 'hub' };
      return manifest('FluxSync', 'apps', { ...spec, nodeSelector: { matchLabels: { kind: 'cluster' } } });
    };
    await establish((lean()[0] as LeanCluster).api, FLUX_DEFINITIONS);
    const refused = await fleet.apply(onHub('f'));
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('lacks a right')]);
    await fleet.allowFlux();
    const roles = ['one', 'two'].map((cluster) => fleet.flux(`${cluster}.apps`));
    const play = async (role: FluxRole): Promise<void> => {
      await role.asked('a');
      await role.fetches('a');
      await role.applies('a');
    };
    const [applied] = await Promise.all([fleet.apply(onHub('a')), ...roles.map(play)]);
    expect(applied).toMatchObject({ code: 0 });
    const found = await Promise.all(roles.map((role) => role.kustomization()));
    expect(found).toMatchObject([
      { spec: { kubeConfig: { secretRef: { name: 'plain', key: 'value' } } } },
      { spec: { kubeConfig: { secretRef: { name: 'two-kubeconfig', key: 'value' } } } },
    ]);
    expect(await Promise.all(roles.map((role) => role.pinned()))).toEqual([commit('a'), commit('a')]);
    expect(await fleet.cli('delete', 'FluxSync', 'apps', '--wait')).toMatchObject({ code: 0 });
    expect(await Promise.all(roles.map((role) => role.source()))).toEqual([undefined, undefined]);
  });

  test('a Cluster whose control plane is lost is unavailable, then silent, skipped, and picked up later', async () => {
    await fleet.ready('two', false);
    await until(
      async () => (await fleet.cli('why', 'two.fleet')).stdout.includes('unavailable: the control plane is not ready'),
      'it says why it is unavailable',
    );
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
    // The one that the test of the rights for Flux is about.
    const missing = [...fleet.log.matchAll(/the permission to (.*?) is missing/g)].map(([, right]) => right);
    expect(missing).toEqual(['get configmaps in the namespace fleet']);
  });

  test('a cluster whose Secret returns later still knows what it was before', async () => {
    await fleet.secret('plain', one.kubeconfig(), { 'sluice.dev/cluster': 'one', kind: 'cluster' });
    await fleet.untilNodes({ 'one.fleet': 'ready' });
    await has(one, '3');
    expect(await fleet.cli('delete', 'KubeObjects', 'x', '--wait')).toMatchObject({ code: 0 });
    expect(await one.api.get('/api/v1/namespaces/default/configmaps/x')).toBeUndefined();
  });
});
