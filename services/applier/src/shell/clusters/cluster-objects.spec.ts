import { ClusterApi, type LiveObject } from '#libs/kube/lean';
import { describeOnClusters, until } from '#libs/testing';
import type { ConfigEntry } from '#libs/contracts';
import {
  ClusterScene,
  config,
  configMap,
  configMapPath,
  deployment,
  deploymentPath,
  namespace,
  objects,
} from './cluster.fixture.js';

describeOnClusters('the objects of a cluster', 1, (clusters) => {
  let scene: ClusterScene;
  beforeEach(async () => {
    scene = new ClusterScene(clusters()[0] as (typeof scene)['cluster']);
    await scene.joined();
  });
  afterEach(async () => {
    await scene.end();
    await scene.api.remove(deploymentPath('web'));
  });

  const roll = async (...fragments: readonly ConfigEntry[]) => {
    const { verdict, reason } = await scene.bus.roll(config(...fragments), { applyMs: 60_000 });
    return verdict === 'applied' ? verdict : `${verdict}: ${reason}`;
  };
  const managersOf = async (path: string): Promise<readonly string[]> => {
    const { metadata } = (await scene.api.get(path)) as unknown as {
      readonly metadata: {
        readonly managedFields?: readonly { readonly manager: string; readonly operation: string }[];
      };
    };
    return (metadata.managedFields ?? []).map(({ manager, operation }) => `${manager}/${operation}`).sort();
  };

  it('are created, updated and deleted, and their fields too', async () => {
    expect(await roll(objects('a', [configMap('x', { a: '1', b: '1' }), configMap('y', { a: '1' })]))).toBe('applied');
    expect([await scene.data('x'), await scene.data('y')]).toEqual([{ a: '1', b: '1' }, { a: '1' }]);
    expect(await managersOf(configMapPath('x'))).toEqual(['sluice/Apply']);
    expect(await roll(objects('a', [configMap('x', { a: '2' })]))).toBe('applied');
    expect([await scene.data('x'), await scene.data('y')]).toEqual([{ a: '2' }, undefined]);
    expect(await roll()).toBe('applied');
    expect(await scene.data('x')).toBeUndefined();
  });

  it('are applied in an order that works: namespaces, then the rest', async () => {
    const inside = configMap('x', { a: '1' }, { namespace: 'later' });
    expect(await roll(objects('a', [inside]), objects('b', [namespace('later')]))).toBe('applied');
    expect(await scene.api.get('/api/v1/namespaces/later/configmaps/x')).toMatchObject({ data: { a: '1' } });
    expect(await roll()).toBe('applied');
    expect(await scene.api.get('/api/v1/namespaces/later/configmaps/x')).toBeUndefined();
  });

  it('get back what they had when their fragment is deleted, and what others set since stays', async () => {
    await scene.apply(configMapPath('x'), configMap('x', { a: 'mine', c: 'mine' }), 'me');
    expect(await roll(objects('a', [configMap('x', { a: '1', b: '1' })], { takeOver: true }))).toBe('applied');
    expect(await scene.data('x')).toEqual({ a: '1', b: '1', c: 'mine' });
    await scene.api.patch(configMapPath('x'), { data: { d: 'new' } }, 'you');
    expect(await roll()).toBe('applied');
    expect(await scene.data('x')).toEqual({ a: 'mine', c: 'mine', d: 'new' });
    expect(await managersOf(configMapPath('x'))).toEqual(['me/Apply', 'you/Update']);
    expect((await scene.api.get(configMapPath('x')))?.metadata.labels).toBeUndefined();
    // The manager that had a field has it again.
    await scene.apply(configMapPath('x'), configMap('x', { c: 'mine' }), 'me');
    expect(await scene.data('x')).toEqual({ c: 'mine', d: 'new' });
    await scene.api.remove(configMapPath('x'));
  });

  it('get back what they had, also if others have changed other fields of it since', async () => {
    await scene.apply(configMapPath('x'), configMap('x', { a: 'mine', c: 'mine' }), 'me');
    expect(await roll(objects('a', [configMap('x', { a: '1' })], { takeOver: true }))).toBe('applied');
    // As the controller of Deployments does with its annotation.
    await scene.api.patch(configMapPath('x'), { data: { c: 'yours' } }, 'you');
    expect(await roll()).toBe('applied');
    expect(await scene.data('x')).toEqual({ a: 'mine', c: 'yours' });
    await scene.api.remove(configMapPath('x'));
  });

  it('are restored in a rollback, also if others have items in the same lists', async () => {
    const ports = (...numbers: readonly number[]) => numbers.map((port) => ({ name: `p${port}`, port }));
    const service = (list: readonly object[]): object => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'x', namespace: 'default' },
      spec: { ports: list },
    });
    const path = '/api/v1/namespaces/default/services/x';
    await scene.apply(path, service(ports(80, 90)), 'me');
    expect(await roll(objects('a', [service(ports(90, 85))]))).toBe('applied');
    const numbers = async () => {
      const found = (await scene.api.get(path)) as unknown as { readonly spec: { readonly ports: { port: number }[] } };
      return found.spec.ports.map(({ port }) => port).sort();
    };
    expect(await numbers()).toEqual([80, 85, 90]);
    const change = config(objects('a', [deployment('web')]));
    scene.bus.grant(change, { applyMs: 6_000 });
    const { reason, restored } = await scene.bus.reported(({ verdict }) => verdict === 'failed');
    expect([reason, restored]).toEqual([expect.not.stringContaining('rollback'), true]);
    expect(await numbers()).toEqual([80, 85, 90]);
    expect(await managersOf(path)).toEqual(['me/Apply', 'sluice/Apply']);
    expect(await roll()).toBe('applied');
    expect(await numbers()).toEqual([80, 90]);
    await scene.api.remove(path);
  });

  it('have the managers of their fields written only if nobody has changed them meanwhile', async () => {
    const read = await scene.apply(configMapPath('x'), configMap('x', { a: '1' }), 'me');
    await scene.api.patch(configMapPath('x'), { data: { b: '2' } }, 'you');
    const api = await ClusterApi.open({ kubeconfig: scene.cluster.kubeconfig(), timeoutMs: 10_000 });
    const resource = { root: '/api/v1', plural: 'configmaps', isNamespaced: true };
    const write = (object: object) => api.writeManagers(resource, object as LiveObject, [], 'sluice');
    // A conflict is tried again.
    await expect(write(read)).rejects.toMatchObject({ name: 'KubeError', code: 409 });
    expect(await managersOf(configMapPath('x'))).toEqual(['me/Apply', 'you/Update']);
    await write((await scene.api.get(configMapPath('x'))) as object);
    expect(await managersOf(configMapPath('x'))).toEqual([]);
    await api.close();
    await scene.api.remove(configMapPath('x'));
  });

  it('are deleted only once they are gone, as long as there is time', async () => {
    const held = (name: string): object => configMap(name, {}, { finalizers: ['example.dev/hold'] });
    expect(await roll(objects('a', [held('x')]))).toBe('applied');
    const removing = roll();
    await until(
      async () => (await scene.api.get(configMapPath('x')))?.metadata.deletionTimestamp,
      'it is being deleted',
    );
    await scene.api.patch(configMapPath('x'), { metadata: { finalizers: [] } });
    expect(await removing).toBe('applied');
    expect(await scene.api.get(configMapPath('x'))).toBeUndefined();
    expect(await roll(objects('a', [held('y')]))).toBe('applied');
    const { verdict, reason, leftovers } = await scene.bus.roll(config(), { applyMs: 6_000 });
    const left = 'ConfigMap/default/y: it is still being deleted, until its finalizers are removed: example.dev/hold';
    expect([verdict, reason, leftovers]).toEqual(['applied', `not done yet: ${left}`, [`KubeObjects/a: ${left}`]]);
    await scene.api.patch(configMapPath('y'), { metadata: { finalizers: [] } });
    // A watch tells it.
    await scene.bus.reported((report) => report.kind === 'announced' && report.leftovers.length === 0);
  });

  it('count as ready if they are Jobs that their own manifest suspends', async () => {
    const job = (more: object): object => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'x', namespace: 'default' },
      spec: { ...more, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a:1' }] } } },
    });
    expect(await roll(objects('a', [job({ suspend: true })]))).toBe('applied');
    // No controller starts it.
    const { verdict, reason } = await scene.bus.roll(config(objects('a', [job({})])), { applyMs: 6_000 });
    expect([verdict, reason]).toEqual(['failed', expect.stringContaining('Job.batch/default/x: has not started')]);
    expect(await roll()).toBe('applied');
  });

  it('that replace one that was being deleted are deleted with their fragment', async () => {
    await scene.apply(configMapPath('x'), configMap('x', { a: 'old' }, { finalizers: ['example.dev/hold'] }), 'me');
    await scene.api.remove(configMapPath('x'));
    const rolling = roll(objects('a', [configMap('x', { a: '1' })]));
    const parent = () => scene.api.get(configMapPath('sluice-applied'));
    await until(parent, 'the change is being applied');
    await scene.api.patch(configMapPath('x'), { metadata: { finalizers: [] } });
    expect(await rolling).toBe('applied');
    expect(await scene.data('x')).toEqual({ a: '1' });
    expect(await roll()).toBe('applied');
    expect(await scene.data('x')).toBeUndefined();
  });

  it('wait for a namespace that is still being deleted', async () => {
    const path = '/api/v1/namespaces/ending';
    await scene.api.create('/api/v1/namespaces', namespace('ending'));
    // Without controllers, the test removes what is in it.
    await scene.api.remove(path);
    expect((await scene.api.get(path))?.metadata.deletionTimestamp).toBeDefined();
    const inside = configMap('x', { a: '1' }, { namespace: 'ending' });
    expect(await roll(objects('a', [inside]))).toMatch(
      /^failed: KubeObjects\/a: ConfigMap\/ending\/x: the namespace is still being deleted, and must be gone first: /,
    );
    const rolling = roll(objects('a', [namespace('ending'), inside]));
    const parent = async () => (await scene.api.get(configMapPath('sluice-applied')))?.metadata.annotations;
    await until(
      async () => (await parent())?.['applyset.kubernetes.io/contains-group-kinds']?.includes('Namespace'),
      'the change is being applied',
    );
    await scene.api.call('PUT', `${path}/finalize`, { ...namespace('ending'), spec: { finalizers: [] } });
    expect(await rolling).toBe('applied');
    expect(await scene.api.get(`${path}/configmaps/x`)).toMatchObject({ data: { a: '1' } });
    // Its deletion is not waited for, but is not done either.
    const { verdict, reason, leftovers } = await scene.bus.roll(config());
    const left = ['KubeObjects/a: Namespace/ending: it is still being deleted'];
    expect([verdict, reason, leftovers]).toEqual(['applied', '', left]);
    await scene.api.call('PUT', `${path}/finalize`, { ...namespace('ending'), spec: { finalizers: [] } });
    await scene.bus.reported((report) => report.kind === 'announced' && report.leftovers.length === 0);
  });

  it('are refused if other managers own their fields, and nothing is changed', async () => {
    await scene.apply(configMapPath('x'), configMap('x', { a: 'mine' }), 'me');
    expect(await roll(objects('a', [configMap('x', { a: '1' }), configMap('y', { a: '1' })]))).toBe(
      'invalid: KubeObjects/a: ConfigMap/default/x: other managers own some of its fields: me owns .data.a. Leave these fields out, or set takeOver: true',
    );
    expect([await scene.data('x'), await scene.data('y')]).toEqual([{ a: 'mine' }, undefined]);
    await scene.api.remove(configMapPath('x'));
  });

  it.each([
    [
      'a value of a wrong type',
      { ...configMap('x', { a: 1 }) },
      /^invalid: KubeObjects\/a: ConfigMap\/default\/x: the cluster refuses it: failed to create typed patch object .*\.data\.a: expected string/,
    ],
    [
      'an unknown field',
      { ...configMap('x', {}), dat: {} },
      /^invalid: .*the cluster refuses it: .*\.dat: field not declared in schema/,
    ],
    [
      'what its API does not allow',
      {
        ...deployment('x'),
        spec: {
          selector: { matchLabels: { a: 'b' } },
          template: { metadata: { labels: { a: 'c' } }, spec: { containers: [{ name: 'a', image: 'a' }] } },
        },
      },
      /^invalid: .*the cluster refuses it: Deployment.apps "x" is invalid: .*`selector` does not match template `labels`/,
    ],
    [
      'a kind in no namespace that is in one here',
      { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'x' } },
      'invalid: KubeObjects/a: Ingress.networking.k8s.io/x: metadata.namespace is required: in this cluster, a Ingress is in a namespace',
    ],
  ])('with %s are invalid, in the words of the cluster', async (_name, object, reason) => {
    expect(await roll(objects('a', [configMap('y', { a: '1' }), object]))).toEqual(
      typeof reason === 'string' ? reason : expect.stringMatching(reason),
    );
    expect(await scene.data('y')).toBeUndefined();
  });

  it('count as applied only once they are ready', async () => {
    scene.bus.grant(config(objects('a', [deployment('web'), configMap('x', { a: '1' })])), { applyMs: 60_000 });
    await until(() => scene.api.get(deploymentPath('web')), 'the deployment is there');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(scene.bus.reports.filter(({ verdict }) => verdict !== '')).toEqual([]);
    await scene.makeReady('web');
    expect(await scene.bus.reported(({ verdict }) => verdict !== '')).toMatchObject({ verdict: 'applied' });
    expect(await roll()).toBe('applied');
  });

  it('are rolled back if one does not become ready, with the reason', async () => {
    const before = objects('a', [deployment('web', 'a:1'), configMap('x', { a: '1' })]);
    scene.bus.grant(config(before), { applyMs: 60_000 });
    await until(() => scene.api.get(deploymentPath('web')), 'the deployment is there');
    await scene.makeReady('web');
    await scene.bus.reported(({ verdict }) => verdict === 'applied');
    // Others own the number of replicas.
    await scene.api.patch(deploymentPath('web'), { spec: { replicas: 7 } }, 'scaler');
    await scene.makeReady('web');
    const after = objects('a', [deployment('web', 'a:2', { replicas: 3 }), configMap('y', { a: '1' })], {
      takeOver: true,
    });
    scene.bus.grant(config(after), { applyMs: 6_000 });
    await until(async () => (await scene.data('y')) !== undefined, 'the change has begun');
    const { verdict, reason, restored } = await scene.bus.reported(({ verdict: one }) => one === 'failed');
    expect([verdict, restored]).toEqual(['failed', true]);
    expect(reason).toMatch(
      /^not confirmed \d+ ms after the lease was read, because this was not ready: Deployment.apps\/default\/web: its controller has seen generation 2 of 3$/,
    );
    expect([await scene.data('x'), await scene.data('y')]).toEqual([{ a: '1' }, undefined]);
    const found = await scene.api.get(deploymentPath('web'));
    expect(found?.spec).toMatchObject({ replicas: 7, template: { spec: { containers: [{ image: 'a:1' }] } } });
    expect(await managersOf(deploymentPath('web'))).toEqual(['controller/Update', 'scaler/Update', 'sluice/Apply']);
    expect(await roll()).toBe('applied');
  });

  it('a failed one ends the change at once', async () => {
    const stalled = {
      type: 'Progressing',
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: 'it is stuck',
    };
    scene.bus.grant(config(objects('a', [deployment('web')])), { applyMs: 600_000 });
    await until(() => scene.api.get(deploymentPath('web')), 'the deployment is there');
    const status = { observedGeneration: 1, conditions: [stalled] };
    await scene.api.patch(`${deploymentPath('web')}/status`, { status }, 'controller');
    expect((await scene.bus.reported(({ verdict }) => verdict !== '')).reason).toBe(
      'Deployment.apps/default/web has failed: ProgressDeadlineExceeded: it is stuck',
    );
    expect(await scene.api.get(deploymentPath('web'))).toBeUndefined();
  });
});
