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
import { HubFleet } from './hub-fleet.js';

const NAMES = ['one', 'two', 'three'] as const;
const HELLO = '/api/v1/namespaces/default/configmaps/hello';

const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { nodeSelector: { matchLabels: { kind: 'cluster' } }, ...spec },
});
const sync = (digit: string): object =>
  manifest('FluxSync', 'apps', {
    placement: 'hub',
    git: { url: 'https://git.example.com/team/apps', branch: 'main', commit: commit(digit) },
    path: './app',
    timeout: '30s',
    substitute: { CLUSTER: '{{ node.name }}' },
  });
const configMap = (value: string, namespace = 'default'): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'hello', namespace },
  // Flux puts the name of the cluster there.
  data: { value, cluster: '${CLUSTER}' },
});
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: 'a:1' }] } },
  },
};

/** A hub with the kustomize-controller of Flux, three clusters without Flux, and a test that plays the source. */
describeOnFlux('three clusters, and a hub whose Flux applies to them', 4, (lean) => {
  let fleet: HubFleet;
  let controller: RunningController;
  let source: PlayedSource;
  let clusters: readonly LeanCluster[];

  beforeAll(async () => {
    const [hub, ...others] = lean() as [LeanCluster, ...LeanCluster[]];
    clusters = others;
    await establish(hub.api, FLUX_DEFINITIONS);
    source = await PlayedSource.start(hub.api);
    const publish = (digit: string, ...objects: readonly object[]): void =>
      source.publish(commit(digit), { 'app/objects.yaml': objects.map((one) => JSON.stringify(one)).join('\n---\n') });
    publish('a', configMap('a'));
    publish('b', configMap('b'), deployment);
    publish('c', configMap('c', 'nowhere'));
    publish('d', configMap('d'));
    controller = await RunningController.start('kustomize-controller', hub);
    fleet = await HubFleet.start(hub);
    await fleet.allowFlux();
    for (const [i, name] of NAMES.entries()) {
      await fleet.secret(name, (others[i] as LeanCluster).kubeconfig(), {
        'sluice.dev/cluster': name,
        kind: 'cluster',
      });
    }
    await fleet.untilNodes({ 'one.fleet': 'ready', 'three.fleet': 'ready', 'two.fleet': 'ready' });
    const pool = manifest('Pool', 'clusters', { maxUnavailable: 1, applyTimeout: '3m' });
    expect(await fleet.apply(pool)).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    await fleet?.close();
    await controller?.stop();
    await source?.stop();
  });

  const values = (): Promise<readonly unknown[]> =>
    Promise.all(
      clusters.map(async ({ api }) => {
        const { data } = ((await api.get(HELLO)) ?? {}) as { readonly data?: Readonly<Record<string, string>> };
        return data === undefined ? undefined : `${data['value']} for ${data['cluster']}`;
      }),
    );
  const all = (value: string): readonly string[] => NAMES.map((name) => `${value} for ${name}.fleet`);

  test('a commit reaches all of them through the hub, each with its own values', async () => {
    expect(await fleet.apply(sync('a'))).toMatchObject({ code: 0 });
    expect(await values()).toEqual(all('a'));
  });

  test('a Deployment that does not become healthy stops at the first, where Flux brings back the last commit', async () => {
    const seen = new Set<number>();
    const stops = clusters.map(({ api }, i) =>
      api.watch(
        '/apis/apps/v1/namespaces/default/deployments?watch=1',
        (type) => void (type === 'ADDED' && seen.add(i)),
        () => undefined,
      ),
    );
    const { code, stderr } = await fleet.apply(sync('b'));
    for (const stop of stops) stop();
    expect([code, stderr]).toEqual([
      4,
      expect.stringMatching(/on the hub: .*HealthCheckFailed: health check failed after 30/),
    ]);
    expect([await values(), seen.size]).toEqual([all('a'), 1]);
    for (const { api } of clusters) expect(await api.list('/apis/apps/v1/namespaces/default/deployments')).toEqual([]);
  });

  test.each([
    ['a manifest that a cluster refuses', 'c', /ReconciliationFailed: .*nowhere/s],
    ['a commit that does not exist', 'f', /GitOperationFailed: .*object not found/],
  ])('%s is invalid, and none of them keeps it', async (_name, digit, words) => {
    const { code, stderr } = await fleet.apply(sync(digit));
    expect([code, stderr]).toEqual([4, expect.stringMatching(words)]);
    expect(await values()).toEqual(all('a'));
  });

  test('what somebody deleted on the hub is drift, and comes back with a repair', async () => {
    const [hub] = lean() as [LeanCluster];
    const path = '/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations/two.apps';
    const pool = manifest('Pool', 'clusters', { maxUnavailable: 1, applyTimeout: '3m', drift: 'repair' });
    expect(await fleet.apply(pool)).toMatchObject({ code: 0 });
    await hub.api.remove(path);
    await until(async () => (await values())[1] === undefined, 'Flux has pruned');
    await until(async () => (await values())[1] === all('a')[1], 'it is repaired');
  });

  test('the next commit reaches all of them, and a deletion leaves nothing behind', async () => {
    expect(await fleet.apply(sync('d'))).toMatchObject({ code: 0 });
    expect(await values()).toEqual(all('d'));
    expect(await fleet.cli('delete', 'FluxSync', 'apps', '--wait')).toMatchObject({ code: 0 });
    expect(await values()).toEqual([undefined, undefined, undefined]);
    const [hub] = lean() as [LeanCluster];
    expect(await hub.api.list('/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations')).toEqual([]);
  });
});
