import { describeOnClusters, until, type LeanCluster } from '#libs/testing';
import { bindingChanges } from './binding-changes.js';
import { CLUSTERS, HubFleet, NAMESPACE } from './hub-fleet.js';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const HUB_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const about = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'about', fieldPath: 'data.region' };
const settings = {
  from: 'hub',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: NAMESPACE,
  name: 'settings',
  fieldPath: "data['tier.name']",
};
const itself = {
  from: 'hub',
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  namespace: '{{ node.labels.sluice.dev/namespace }}',
  name: '{{ node.labels.sluice.dev/cluster }}',
  fieldPath: 'spec.controlPlaneEndpoint.port',
};
const BINDINGS = [
  { name: 'STAGE', label: 'stage', default: 'dev' },
  { name: 'REGION', object: about },
  { name: 'TIER', object: settings },
  { name: 'PORT', object: itself, default: '6443' },
];
const data = {
  all: '{{ bindings.STAGE }} {{ bindings.REGION }} {{ bindings.TIER }} {{ bindings.PORT }}',
};
const manifest = (bindings: readonly object[] = BINDINGS): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name: 'x' },
  spec: {
    nodeSelector: { matchLabels: { kind: 'cluster' } },
    bindings,
    objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'default' }, data }],
  },
});

describeOnClusters('bindings of clusters on a hub', 3, (lean) => {
  let fleet: HubFleet;
  let hub: LeanCluster;
  let one: LeanCluster;
  let two: LeanCluster;
  beforeAll(async () => {
    [hub, one, two] = lean() as [LeanCluster, LeanCluster, LeanCluster];
    fleet = await HubFleet.start(hub);
    await fleet.install();
    await fleet.cluster('one', { labels: { kind: 'cluster', stage: 'prod' } });
    await fleet.cluster('two');
    await fleet.own('one', one.kubeconfig());
    await fleet.own('two', two.kubeconfig());
    await fleet.ready('one');
    await fleet.ready('two');
    await fleet.untilNodes({ 'one.fleet': 'ready', 'two.fleet': 'ready' });
  });
  afterAll(() => fleet?.close());

  const textIn = async ({ api }: LeanCluster): Promise<unknown> =>
    ((await api.get(`${CONFIG_MAPS}/x`)) as { readonly data?: { readonly all?: string } } | undefined)?.data?.all;
  const has = async (cluster: LeanCluster, text: string): Promise<void> => {
    let found: unknown;
    await until(async () => (found = await textIn(cluster)) === text, `it has ${text}`).catch((error: Error) => {
      throw new Error(`${error.message}, but ${String(found)}\n${fleet.log}`);
    });
  };
  const why = async (node: string): Promise<string> => (await fleet.cli('why', node)).stdout.replace(/\s+/g, ' ');
  const untilWhy = async (node: string, words: string): Promise<void> => {
    let found = '';
    await until(async () => (found = await why(node)).includes(words), `why ${node}: ${words}`).catch(
      (error: Error) => {
        throw new Error(`${error.message}, but ${found}`);
      },
    );
  };
  test('what a value is missing for is named, for each cluster, and nothing is rolled out', async () => {
    await hub.api.create(HUB_MAPS, { metadata: { name: 'settings' }, data: { 'tier.name': 'gold' } });
    await two.api.create(CONFIG_MAPS, { metadata: { name: 'about' }, data: { region: 'us' } });
    expect((await fleet.apply(manifest())).code).toBe(0);
    await untilWhy(
      'one.fleet',
      'binding REGION: data.region of ConfigMap default/about cannot be used: it does not exist',
    );
    const tier = "binding TIER: data['tier.name'] of ConfigMap fleet/settings on the hub cannot be used";
    await untilWhy('two.fleet', `${tier}: the user of the kubeconfig of the hub lacks a right: configmaps`);
    expect([await textIn(one), await textIn(two)]).toEqual([undefined, undefined]);
  });

  test('values come from labels, from objects in the cluster, and from objects on the hub', async () => {
    await fleet.allowConfigMaps();
    await has(two, 'dev us gold 6443');
    expect(await textIn(one)).toBe(undefined);
    await one.api.create(CONFIG_MAPS, { metadata: { name: 'about' }, data: { region: 'eu' } });
    await has(one, 'prod eu gold 6443');
  });

  test('a new value is rolled out to the clusters that use it, and the change says what has changed', async () => {
    await one.api.patch(`${CONFIG_MAPS}/about`, { data: { region: 'eu-2' } }, 'somebody');
    await has(one, 'prod eu-2 gold 6443');
    expect(await bindingChanges(fleet.client)).toContainEqual(
      'binding REGION of one.fleet changed from "eu" to "eu-2": data.region of ConfigMap default/about',
    );
    await hub.api.patch(`${CLUSTERS}/two`, { spec: { controlPlaneEndpoint: { port: 8443 } } });
    await has(two, 'dev us gold 8443');
    await hub.api.patch(`${HUB_MAPS}/settings`, { data: { 'tier.name': 'silver' } });
    await has(one, 'prod eu-2 silver 6443');
    await has(two, 'dev us silver 8443');
    const phases = async (): Promise<readonly string[]> =>
      [...(await fleet.client.list('rollouts')).values()].map(({ phase }) => phase);
    const isOpen = (phase: string): boolean => phase === 'rolling' || phase === 'complete';
    await until(async () => !(await phases()).some(isOpen), 'all rollouts have ended');
    expect(new Set(await phases())).toEqual(new Set(['succeeded']));
  });

  test('a label that changes is a new value', async () => {
    await hub.api.patch(`${CLUSTERS}/two`, { metadata: { labels: { stage: 'test' } } });
    await has(two, 'test us silver 8443');
  });

  test('a deleted object: the cluster keeps what it has, says why, and gets the next value', async () => {
    await one.api.remove(`${CONFIG_MAPS}/about`);
    await untilWhy('one.fleet', 'data.region of ConfigMap default/about cannot be used: it does not exist');
    expect(await textIn(one)).toBe('prod eu-2 silver 6443');
    await one.api.create(CONFIG_MAPS, { metadata: { name: 'about' }, data: { region: 'eu-3' } });
    await has(one, 'prod eu-3 silver 6443');
  });

  test('a field that is gone gives way to the default, and a value that is too large is refused with the reason', async () => {
    await hub.api.patch(`${CLUSTERS}/two`, { spec: { controlPlaneEndpoint: null } });
    await has(two, 'test us silver 6443');
    await two.api.patch(`${CONFIG_MAPS}/about`, { data: { region: 'x'.repeat(5_000) } }, 'somebody');
    await untilWhy(
      'two.fleet',
      'data.region of ConfigMap default/about cannot be used: the field has 5000 bytes; the limit is 4096',
    );
    await two.api.patch(`${CONFIG_MAPS}/about`, { data: { region: 'us' } }, 'somebody');
    await untilWhy('two.fleet', 'up to date');
    expect(await textIn(two)).toBe('test us silver 6443');
  });

  test('a Secret is refused, and the reason says what to do instead', async () => {
    const secret = { name: 'PASSWORD', object: { ...about, kind: 'Secret', fieldPath: 'data.password' } };
    const { code, stderr } = await fleet.apply(manifest([...BINDINGS, secret]));
    expect(code).not.toBe(0);
    expect(stderr).toContain('a Secret cannot be bound');
  });
});
