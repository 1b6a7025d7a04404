import { describeOnClusters, until, type LeanCluster } from '#libs/testing';
import { Deployments } from '../../cli/src/demo/clusters/deployments.js';
import { ClusterFleet, type FleetCluster } from './cluster-fleet.js';

const all = { nodeSelector: { matchLabels: { kind: 'cluster' } } };
const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { ...all, ...spec },
});
const configMap = (name: string, value: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value, cluster: '{{ node.name }}' },
});
const deployment = (image: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image }] } },
  },
});
const objects = (name: string, ...list: readonly object[]): object => manifest('KubeObjects', name, { objects: list });

describeOnClusters('a fleet of clusters', 3, (lean) => {
  let fleet: ClusterFleet;
  let clusters: readonly FleetCluster[];

  beforeAll(async () => {
    fleet = await ClusterFleet.start(lean());
    ({ clusters } = fleet);
    const pool = manifest('Pool', 'clusters', { maxUnavailable: 1, applyTimeout: '20s', drift: 'repair' });
    expect((await fleet.ended(await fleet.apply(pool))).outcome).toBe('committed');
  });
  afterAll(() => fleet.close());

  const value = async ({ api }: LeanCluster, name = 'x'): Promise<unknown> => {
    const found = await api.get(`/api/v1/namespaces/default/configmaps/${name}`);
    return (found as { readonly data?: { readonly value?: string } } | undefined)?.data?.value;
  };
  const values = (name = 'x'): Promise<readonly unknown[]> =>
    Promise.all(clusters.map(({ cluster }) => value(cluster, name)));
  const images = (): Promise<readonly unknown[]> =>
    Promise.all(
      clusters.map(async ({ cluster }) => {
        const found = await cluster.api.get('/apis/apps/v1/namespaces/default/deployments/web');
        const { template } = (found?.spec ?? {}) as {
          readonly template?: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
        };
        return template?.spec.containers[0]?.image;
      }),
    );
  const stateOf = async (name: string): Promise<string | undefined> =>
    (await fleet.client.list('nodes')).get(name)?.state;

  const states = (): Promise<readonly unknown[]> => Promise.all(clusters.map(({ name }) => stateOf(name)));

  test('a change reaches all of them, one after another, with the name of each in its objects', async () => {
    expect((await fleet.ended(await fleet.apply(objects('x', configMap('x', '1'))))).outcome).toBe('committed');
    expect(await values()).toEqual(['1', '1', '1']);
    const third = await clusters[2]?.cluster.api.get('/api/v1/namespaces/default/configmaps/x');
    expect(third).toMatchObject({ data: { value: '1', cluster: 'c-3' } });
    const { stdout } = await fleet.run('get', 'fragments');
    expect(stdout).toMatch(/^KubeObjects +x +c\d+ +cli +3\/3/m);
  });

  test('one whose Deployment does not become ready stops the change for all others, and is rolled back', async () => {
    const change = await fleet.apply(objects('x', configMap('x', '2'), deployment('a:1')));
    const { outcome, reason } = await fleet.ended(change);
    expect([outcome, await values(), await images()]).toEqual([
      'reverted',
      ['1', '1', '1'],
      [undefined, undefined, undefined],
    ]);
    expect(reason).toContain('because this was not ready: Deployment.apps/default/web: 0 of 1 replicas exist');
  });

  const probe = (expression: string): object =>
    manifest('Probe', 'counts', {
      kube: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'x', expression },
      retries: 0,
    });

  test('a CEL expression that is not true after the change stops it, and is named with the reason', async () => {
    const good = await fleet.apply(probe('int(object.data.value) >= 1 && object.data.cluster.startsWith("c-")'));
    expect((await fleet.ended(good)).outcome).toBe('committed');
    const { outcome, reason } = await fleet.ended(await fleet.apply(objects('x', configMap('x', '0'))));
    expect([outcome, await values()]).toEqual(['reverted', ['1', '1', '1']]);
    expect(reason).toContain(
      'ConfigMap/default/x: int(object.data.value) >= 1 && object.data.cluster.startsWith("c-"): it is false',
    );
    const missing = await fleet.ended(await fleet.apply(probe('object.status.ready > 1')));
    expect([missing.outcome, missing.reason]).toEqual([
      'reverted',
      expect.stringContaining('ConfigMap/default/x: object.status.ready > 1: no such key: status'),
    ]);
  });

  test('a wrong CEL expression is refused in the plan, with its place', async () => {
    const change = await fleet.apply(probe('status.ready > 1')).catch((error: Error) => error.message);
    expect(change).toMatch(/exit code 3: [^]*unknown variable: status at character 1/);
  });

  test('a CEL expression that would take hours is stopped, and fails the probe on one cluster', async () => {
    const digits = '[0,1,2,3,4,5,6,7,8,9]';
    const loops = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'];
    const endless = loops.reduceRight((inner, one) => `${digits}.all(${one}, ${inner})`, 'object.data.value != "x"');
    const { outcome, reason } = await fleet.ended(await fleet.apply(probe(endless)));
    expect([outcome, reason]).toEqual(['reverted', expect.stringContaining('because it takes more than 1 s')]);
    expect((await fleet.run('delete', 'Probe', 'counts', '--wait')).code).toBe(0);
  });

  test('an object that somebody changed or deleted by hand is drift, and is repaired', async () => {
    const { api } = (clusters[1] as FleetCluster).cluster;
    await api.patch('/api/v1/namespaces/default/configmaps/x', { data: { value: 'edited' } }, 'kubectl-edit');
    await until(async () => (await values())[1] === '1', 'the edit is repaired');
    await api.remove('/api/v1/namespaces/default/configmaps/x');
    await until(async () => (await values())[1] === '1', 'the object is back');
  });

  test('one that is cut off in the middle of a change is deferred, and gets the latest when it answers again', async () => {
    const { proxy, cluster, name } = clusters[0] as FleetCluster;
    let isCut = false;
    const stop = cluster.api.watch(
      '/api/v1/namespaces/default/configmaps?watch=1',
      (_, { metadata }) => {
        if (metadata.name !== 'y' || isCut) return;
        isCut = true;
        void proxy.cut();
      },
      () => undefined,
    );
    const change = await fleet.apply(objects('x', configMap('x', '3'), configMap('y', '3'), configMap('z', '3')));
    expect((await fleet.ended(change)).outcome).toBe('committed');
    stop();
    expect([isCut, (await values())[1], (await values())[2]]).toEqual([true, '3', '3']);
    await until(async () => (await stateOf(name)) === 'silent', 'the cluster is silent');
    await proxy.restore();
    await until(async () => JSON.stringify(await values('z')) === '["3","3","3"]', 'it has caught up');
    expect(await values()).toEqual(['3', '3', '3']);
  });

  test('kill -9 of the applier in the middle of a change: another one rolls it back, and applies it then', async () => {
    const { cluster } = clusters[0] as FleetCluster;
    let isKilled = false;
    const now = new Map<string, unknown>();
    const history: string[] = [];
    const stop = cluster.api.watch(
      '/api/v1/namespaces/default/configmaps?watch=1',
      (type, object) => {
        const { name } = object.metadata;
        if (name !== 'w' && name !== 'x') return;
        const { data } = object as { readonly data?: { readonly value?: string } };
        now.set(name, type === 'DELETED' ? undefined : data?.value);
        history.push(`w is ${String(now.get('w'))}, x is ${String(now.get('x'))}`);
        if (name !== 'w' || type !== 'ADDED' || isKilled) return;
        void fleet.processes.kill('applier').then(() => (isKilled = true));
      },
      () => undefined,
    );
    // It waits for the Deployment, so it is in the middle of the change when it is killed.
    const change = await fleet.apply(objects('x', configMap('w', '4'), configMap('x', '4'), deployment('a:1')));
    await until(() => isKilled, 'the applier is killed');
    // A silent cluster is deferred. If another copy started before that, it would depend on its speed which ones are.
    await until(async () => (await states()).every((state) => state === 'silent'), 'all clusters are silent');
    history.length = 0;
    fleet.startApplier('second');
    expect((await fleet.ended(change)).outcome).toBe('committed');
    await until(() => history.includes('w is undefined, x is 3'), 'it is rolled back');
    const rolledBackAt = history.indexOf('w is undefined, x is 3');
    expect(history.slice(0, rolledBackAt)).not.toContain('w is 4, x is 4');
    // No cluster has applied the committed config yet, so one tries it first. From now on its pods start.
    const players = clusters.map((one) => new Deployments(one.cluster.api, () => undefined).start());
    await until(() => history.includes('w is 4, x is 4'), 'the committed config is applied to it');
    await until(async () => String(await values('w')) === '4,4,4', 'the other clusters follow');
    for (const player of players) player.stop();
    stop();
    await until(async () => (await states()).every((state) => state !== 'silent'), 'no cluster is silent');
    const next = await fleet.apply(objects('x', configMap('w', '5'), configMap('x', '5')));
    expect((await fleet.ended(next)).outcome).toBe('committed');
    expect([await values(), await values('w')]).toEqual([
      ['5', '5', '5'],
      ['5', '5', '5'],
    ]);
  });

  test('a deleted fragment leaves nothing behind', async () => {
    expect((await fleet.run('delete', 'KubeObjects', 'x', '--wait')).code).toBe(0);
    expect([await values(), await values('w')]).toEqual([
      [undefined, undefined, undefined],
      [undefined, undefined, undefined],
    ]);
  });
});
