import { ApiGate, describeOnClusters, establish, FLUX_DEFINITIONS, until, type LeanCluster } from '#libs/testing';
import type { Config } from '#libs/contracts';
import {
  ClusterScene,
  config,
  configMap,
  configMapPath,
  definition,
  objects,
  plainKubeconfig,
  thing,
} from './cluster.fixture.js';
import { FluxRole, sync } from './flux.fixture.js';

const MANY = Array.from({ length: 12 }, (_, i) => `m${i}`);
const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x', namespace: 'default' } };
const SECRET = '/api/v1/namespaces/default/secrets/x';
const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.dev';

/** What a watch tells arrives only if the test lets it. What the API server answers to a read is always the latest. */
describeOnClusters('a cluster whose watches are late', 1, (clusters) => {
  let scene: ClusterScene;
  let gate: ApiGate;
  beforeEach(async () => {
    const [cluster] = clusters() as [LeanCluster];
    scene = new ClusterScene(cluster);
    gate = await ApiGate.before(cluster.access);
    await scene.start('one', plainKubeconfig(gate.url));
    await scene.bus.reported(({ kind }) => kind === 'announced');
  });
  afterEach(async () => {
    gate.letPass();
    await scene.end();
    await gate.close();
    for (const name of ['x', 'y', ...MANY]) await scene.api.remove(configMapPath(name));
    for (const path of [SECRET, DEFINITION]) await scene.api.remove(path);
  });

  const rolled = async (fragments: Config, more: object = {}): Promise<string> => {
    const { verdict, reason } = await scene.bus.roll(fragments, more);
    return reason === '' ? verdict : `${verdict}: ${reason}`;
  };
  const repair = (...differences: readonly string[]) =>
    ({ kind: 'repair', drift: { overwrite: true, differences } }) as const;
  const missing = (what: string): string => `${what}: is missing`;
  /** From now on, no watch tells anything about these kinds. */
  const delay = async (...plurals: readonly string[]): Promise<void> => {
    const isWatched = (plural: string): boolean =>
      gate.requests.some((line) => line.includes(`/${plural}?`) && line.includes('watch=1'));
    await until(() => plurals.every(isWatched), 'they are watched');
    gate.holdBack(new RegExp(`/(${plurals.join('|')})\\?.*watch=1`));
  };

  it('gets back what somebody has deleted, if only some of it is known when the repair begins', async () => {
    const both = config(objects('a', [configMap('x', { a: '1' }), secret]));
    expect(await rolled(both)).toBe('applied');
    await delay('configmaps');
    for (const path of [configMapPath('x'), SECRET]) await scene.api.remove(path);
    const differences = ['ConfigMap', 'Secret'].map((kind) => missing(`KubeObjects/a: ${kind}/default/x`));
    expect(await rolled(both, repair(...differences))).toBe('applied');
    expect([await scene.data('x'), (await scene.api.get(SECRET))?.kind]).toEqual([{ a: '1' }, 'Secret']);
  });

  it('gets a definition and its objects back', async () => {
    const both = config(objects('a', [thing]), objects('b', [definition]));
    expect(await rolled(both)).toBe('applied');
    await delay('things');
    await scene.api.remove(DEFINITION);
    await until(async () => (await scene.api.get(DEFINITION)) === undefined, 'the definition is gone');
    const lost = missing('KubeObjects/b: CustomResourceDefinition.apiextensions.k8s.io/things.example.dev');
    expect(await rolled(both, repair(lost, missing('KubeObjects/a: Thing.example.dev/default/x')))).toBe('applied');
    expect(await scene.api.get('/apis/example.dev/v1/namespaces/default/things/x')).toMatchObject({ size: 3 });
  });

  it('gets the source of a FluxSync back', async () => {
    await establish(scene.api, FLUX_DEFINITIONS);
    const flux = new FluxRole(scene.api);
    const lease = scene.bus.grant(config(sync('a')), { applyMs: 60_000 });
    await flux.asked('a');
    await flux.fetches('a');
    await flux.applies('a');
    expect((await scene.bus.reported((report) => report.lease === lease)).verdict).toBe('applied');
    await delay('gitrepositories');
    await flux.removeSource();
    const again = scene.bus.grant(
      config(sync('a')),
      repair(missing('FluxSync/apps: GitRepository.source.toolkit.fluxcd.io/default/apps')),
    );
    const report = scene.bus.reported((one) => one.lease === again);
    await until(async () => (await flux.source()) !== undefined, 'the source is there again');
    await flux.fetches('a');
    expect((await report).verdict).toBe('applied');
    await flux.remove();
  });

  it('reports what somebody has deleted before another change begins', async () => {
    const maps = (y: string): Config => config(objects('a', [configMap('x', { a: '1' }), configMap('y', { a: y })]));
    expect(await rolled(maps('1'))).toBe('applied');
    await delay('configmaps');
    await scene.api.remove(configMapPath('x'));
    const text = missing('KubeObjects/a: ConfigMap/default/x');
    const { verdict, differences } = await scene.bus.roll(maps('2'), { drift: { overwrite: true, differences: [] } });
    expect([verdict, differences]).toEqual(['refused', [text]]);
    expect(await rolled(maps('2'), { drift: { overwrite: true, differences: [text] } })).toBe('applied');
    expect([await scene.data('x'), await scene.data('y')]).toEqual([{ a: '1' }, { a: '2' }]);
  });

  it('is asked once for all objects of a kind, if there are many, and only for what differs after that', async () => {
    const maps = (y: string, gone = ''): Config =>
      config(
        objects('a', [
          ...MANY.filter((name) => name !== gone).map((name) => configMap(name, { a: '1' })),
          configMap('y', { a: y }),
        ]),
      );
    expect(await rolled(maps('1'))).toBe('applied');
    await delay('configmaps');
    const countOf = (about: RegExp): number => gate.requests.filter((line) => about.test(line)).length;
    gate.requests.length = 0;
    expect(await rolled(maps('2'))).toBe('applied');
    expect([countOf(/configmaps\?labelSelector.*limit/), countOf(/^GET .*configmaps\/m\d/)]).toEqual([1, 0]);
    await scene.api.patch(configMapPath('m3'), { data: { a: 'edited' } }, 'kubectl-edit');
    gate.requests.length = 0;
    const text = 'KubeObjects/a: ConfigMap/default/m3: data.a is "edited" instead of "1"';
    const { verdict, differences } = await scene.bus.roll(maps('3'), { drift: { overwrite: true, differences: [] } });
    expect([verdict, differences]).toEqual(['refused', [text]]);
    expect([countOf(/configmaps\?labelSelector.*limit/), countOf(/^GET .*configmaps\/m\d/)]).toEqual([1, 1]);
  });
});
