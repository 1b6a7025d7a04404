import {
  describeOnFlux,
  establish,
  FLUX_DEFINITIONS,
  PlayedSource,
  RunningController,
  until,
  type LeanCluster,
} from '#libs/testing';
import { commit } from '../../services/applier/src/shell/clusters/flux.fixture.js';
import { bindingChanges } from './binding-changes.js';
import { CLUSTERS, HubFleet, NAMESPACE } from './hub-fleet.js';

const HUB_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const BINDINGS = [
  { name: 'STAGE', label: 'stage' },
  {
    name: 'COMMIT',
    object: {
      from: 'hub',
      apiVersion: 'v1',
      kind: 'ConfigMap',
      namespace: NAMESPACE,
      name: 'release',
      fieldPath: 'data.commit',
    },
  },
];
/** Whose Flux applies them: that of the cluster, or that of the hub. Each applies a folder of its own. */
const PLACES = { cluster: { namespace: 'default' }, hub: { placement: 'hub' } } as const;
const sync = (place: keyof typeof PLACES): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'FluxSync',
  metadata: { name: place },
  spec: {
    nodeSelector: { matchLabels: { kind: 'cluster' } },
    bindings: BINDINGS,
    git: { url: 'https://git.example.com/team/apps', branch: 'main', commit: '{{ bindings.COMMIT }}' },
    path: `./${place}`,
    timeout: '30s',
    substitute: { STAGE: '{{ bindings.STAGE }}' },
    ...PLACES[place],
  },
});
const files = (digit: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.keys(PLACES).map((place) => [
      `${place}/hello.yaml`,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `by-${place}`, namespace: 'default' },
        // Flux puts the value there.
        data: { text: `${digit} in \${STAGE}` },
      }),
    ]),
  );

/** Both run the kustomize-controller of Flux, and the test plays their source controllers. */
describeOnFlux('bindings of a FluxSync, in a cluster and on its hub', 2, (lean) => {
  let fleet: HubFleet;
  let hub: LeanCluster;
  let cluster: LeanCluster;
  const running: { stop(): Promise<void> }[] = [];
  beforeAll(async () => {
    [hub, cluster] = lean() as [LeanCluster, LeanCluster];
    for (const { api } of [hub, cluster]) {
      await establish(api, FLUX_DEFINITIONS);
      const source = await PlayedSource.start(api);
      running.push(source);
      for (const digit of ['a', 'b', 'c']) source.publish(commit(digit), files(digit));
    }
    for (const one of [hub, cluster]) running.push(await RunningController.start('kustomize-controller', one));
    fleet = await HubFleet.start(hub);
    await fleet.install();
    await fleet.allowFlux();
    await fleet.allowConfigMaps();
    await hub.api.create(HUB_MAPS, { metadata: { name: 'release' }, data: { commit: commit('a') } });
    await fleet.cluster('one', { labels: { kind: 'cluster', stage: 'dev' } });
    await fleet.own('one', cluster.kubeconfig());
    await fleet.ready('one');
    await fleet.untilNodes({ 'one.fleet': 'ready' });
  });
  afterAll(async () => {
    await fleet?.close();
    for (const one of running.reverse()) await one.stop();
  });

  const textOf = async (place: string): Promise<unknown> => {
    const found = await cluster.api.get(`/api/v1/namespaces/default/configmaps/by-${place}`);
    return (found as { readonly data?: { readonly text?: string } } | undefined)?.data?.text;
  };
  const texts = (): Promise<readonly unknown[]> => Promise.all(Object.keys(PLACES).map(textOf));
  const has = async (text: string): Promise<void> => {
    let found: readonly unknown[] = [];
    await until(async () => (found = await texts()).every((one) => one === text), `both are ${text}`).catch(
      (error: Error) => {
        throw new Error(`${error.message}, but ${found.join(' and ')}\n${fleet.log}`);
      },
    );
  };
  const release = (digit: string): Promise<unknown> =>
    hub.api.patch(`${HUB_MAPS}/release`, { data: { commit: commit(digit) } }, 'a pipeline');
  /** How the last rollouts ended: those of new values too. */
  const phases = async (): Promise<readonly string[]> =>
    [...(await fleet.client.list('rollouts')).values()].map(({ phase }) => phase);
  const settled = (): Promise<unknown> =>
    until(async () => (await phases()).every((phase) => phase !== 'rolling' && phase !== 'complete'), 'all have ended');
  const changed = (from: string, to: string): string =>
    `binding COMMIT of one.fleet changed from "${commit(from)}" to "${commit(to)}": data.commit of ConfigMap ${NAMESPACE}/release on the hub`;

  test('values of a label and of an object on the hub get into what Flux applies, wherever it runs', async () => {
    const pool = { apiVersion: 'sluice.dev/v1alpha1', kind: 'Pool', metadata: { name: 'clusters' } };
    const spec = { nodeSelector: { matchLabels: { kind: 'cluster' } }, applyTimeout: '3m' };
    const { code, stderr } = await fleet.apply({ ...pool, spec }, sync('cluster'), sync('hub'));
    expect([code, stderr]).toEqual([0, expect.stringContaining('waiting  needs BoundValues/one.fleet')]);
    await has('a in dev');
  });

  test('a new value of the object is a change, which pins the next commit', async () => {
    await release('b');
    await has('b in dev');
    expect((await bindingChanges(fleet.client)).at(-1)).toBe(changed('a', 'b'));
  });

  test('a new value of the label is a change', async () => {
    await hub.api.patch(`${CLUSTERS}/one`, { metadata: { labels: { stage: 'prod' } } });
    await has('b in prod');
    await settled();
    expect(new Set(await phases())).toEqual(new Set(['succeeded']));
  });

  test('a commit that does not exist is rolled back, and the next one is rolled out', async () => {
    await release('f');
    await until(async () => (await bindingChanges(fleet.client)).includes(changed('b', 'f')), 'it is published');
    const reverted = async (): Promise<string | undefined> =>
      [...(await fleet.client.list('changes')).values()].find(
        ({ message, phase }) => message === changed('b', 'f') && phase === 'ended',
      )?.change;
    const { stdout } = await fleet.cli('why', await until(reverted, 'it is rolled back'));
    expect(stdout).toMatch(/GitRepository\.\S+ has failed: GitOperationFailed: .*object not found/s);
    expect(await texts()).toEqual(['b in prod', 'b in prod']);
    await release('c');
    await has('c in prod');
  });
});
