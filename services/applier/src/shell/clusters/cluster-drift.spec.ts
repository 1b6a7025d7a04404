import { ApiGate, describeOnClusters, until } from '#libs/testing';
import { ClusterScene, config, configMap, configMapPath, objects, plainKubeconfig } from './cluster.fixture.js';

const FRAGMENT = config(objects('a', [configMap('x', { a: '1' }), configMap('y', { a: '1' })]));

describeOnClusters('drift in a cluster', 1, (clusters) => {
  let scene: ClusterScene;
  let gate: ApiGate;
  beforeEach(async () => {
    const [cluster] = clusters();
    if (cluster === undefined) throw new Error('there is no cluster');
    scene = new ClusterScene(cluster);
    gate = await ApiGate.before(cluster.access);
    await scene.start('one', plainKubeconfig(gate.url));
    await scene.bus.reported(({ kind }) => kind === 'announced');
    expect((await scene.bus.roll(FRAGMENT)).verdict).toBe('applied');
    await until(() => gate.requests.some((line) => line.includes('watch=1')), 'the objects are watched');
  });
  afterEach(async () => {
    await scene.end();
    await gate.close();
    for (const name of ['x', 'y']) await scene.api.remove(configMapPath(name));
  });

  const drifted = async (text: string): Promise<void> => {
    const report = await scene.bus.reported(({ differences }) => differences.some((one) => one.includes(text)));
    expect(report.kind).toBe('drifted');
  };
  const repair = (differences: readonly string[]) =>
    scene.bus.roll(FRAGMENT, { kind: 'repair', drift: { overwrite: true, differences: [...differences] } });

  it('is noticed by a watch if somebody changes an object, and repaired by a lease', async () => {
    await scene.api.patch(configMapPath('x'), { data: { a: 'edited' } }, 'kubectl-edit');
    const text = 'KubeObjects/a: ConfigMap/default/x: data.a is "edited" instead of "1"';
    await drifted(text);
    expect((await repair([text])).verdict).toBe('applied');
    expect(await scene.data('x')).toEqual({ a: '1' });
  });

  it('is noticed if somebody deletes an object, and the object is made again', async () => {
    await scene.api.remove(configMapPath('y'));
    await drifted('KubeObjects/a: ConfigMap/default/y: is missing');
    expect((await repair(['KubeObjects/a: ConfigMap/default/y: is missing'])).verdict).toBe('applied');
    expect(await scene.data('y')).toEqual({ a: '1' });
  });

  it('is noticed if somebody takes the label of Sluice away', async () => {
    await scene.api.patch(configMapPath('x'), { metadata: { labels: null } }, 'kubectl');
    await drifted('metadata.labels');
  });

  it('does not include fields that Sluice has not set', async () => {
    await scene.api.patch(configMapPath('x'), { data: { b: 'yours' } }, 'you');
    await scene.api.remove(configMapPath('y'));
    await drifted('ConfigMap/default/y');
    expect(scene.bus.reports.at(-1)?.differences).toEqual(['KubeObjects/a: ConfigMap/default/y: is missing']);
    expect((await scene.bus.roll(config())).verdict).toBe('applied');
    expect(await scene.data('x')).toBeUndefined();
  });

  it('is told apart from what others own: a new config overwrites it, and takes nothing else', async () => {
    await scene.api.patch(configMapPath('x'), { data: { a: 'edited', b: 'yours' } }, 'kubectl-edit');
    await drifted('data.a is "edited"');
    const lease = {
      drift: {
        overwrite: true,
        differences: ['KubeObjects/a: ConfigMap/default/x: data.a is "edited" instead of "1"'],
      },
    };
    const both = config(objects('a', [configMap('x', { a: '2', b: '2' })]));
    expect((await scene.bus.roll(both, lease)).reason).toContain('kubectl-edit owns .data.b. Leave these fields out');
    expect(await scene.data('x')).toEqual({ a: 'edited', b: 'yours' });
    expect((await scene.bus.roll(config(objects('a', [configMap('x', { a: '2' })])), lease)).verdict).toBe('applied');
    expect(await scene.data('x')).toEqual({ a: '2', b: 'yours' });
  });

  it('costs no requests while nothing changes', async () => {
    const count = (): number => gate.requests.filter((line) => !line.includes('/readyz')).length;
    const { api } = scene;
    // The status of an object changes all the time, and drift checks run.
    const before = count();
    await api.patch(configMapPath('x'), { metadata: { annotations: { n: '1' } } }, 'you');
    await until(() => count() > before, 'the changed object is read');
    const settled = count();
    const looks = gate.requests.length;
    await until(() => gate.requests.length > looks + 3, 'the cluster is asked whether it answers');
    expect(count() - settled).toBeLessThanOrEqual(1);
  });
});
