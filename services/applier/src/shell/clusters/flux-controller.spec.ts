import type { ConfigEntry, NodeReport } from '#libs/contracts';
import {
  describeOnFlux,
  establish,
  FLUX_DEFINITIONS,
  PlayedSource,
  RunningController,
  until,
  type LeanCluster,
} from '#libs/testing';
import { ClusterScene, config, configMap, configMapPath, deployment } from './cluster.fixture.js';
import { commit, FluxRole, sync as syncOf } from './flux.fixture.js';

/** With the shortest timeout: Flux looks at the health of a revision for so long, whatever comes next. */
const sync = (digit: string): ConfigEntry => syncOf(digit, { timeout: '30s' });
const outcome = ({ verdict, reason }: NodeReport): string => (reason === '' ? verdict : `${verdict}: ${reason}`);
const file = (...objects: readonly object[]): Readonly<Record<string, string>> => ({
  'objects.yaml': objects.map((object) => JSON.stringify(object)).join('\n---\n'),
});
const hello = (value: string, metadata: object = {}): object => configMap('hello', { value }, metadata);

/** The test only plays the source: kustomize-controller is that of Flux. */
describeOnFlux('a FluxSync in a cluster that runs the kustomize-controller', 1, (clusters) => {
  let scene: ClusterScene;
  let controller: RunningController;
  let source: PlayedSource;
  let flux: FluxRole;
  beforeAll(async () => {
    const cluster = clusters()[0] as LeanCluster;
    await establish(cluster.api, FLUX_DEFINITIONS);
    source = await PlayedSource.start(cluster.api);
    source.publish(commit('a'), file(hello('a'), configMap('more', {})));
    source.publish(commit('b'), file(hello('b')));
    source.publish(commit('c'), file(hello('c', { namespace: 'later' })));
    source.publish(commit('d'), file(hello('d'), deployment('web')));
    source.publish(commit('e'), { 'objects.yaml': 'no: [manifest' });
    controller = await RunningController.start('kustomize-controller', cluster);
    scene = new ClusterScene(cluster);
    flux = new FluxRole(cluster.api);
    await scene.joined();
  });
  afterAll(async () => {
    await scene?.end();
    await controller?.stop();
    await source?.stop();
  });

  const roll = async (fragment?: ConfigEntry, applyMs = 120_000): Promise<string> => {
    const lease = scene.bus.grant(config(...(fragment === undefined ? [] : [fragment])), { applyMs });
    return outcome(await scene.bus.reported((report) => report.lease === lease));
  };
  const now = async (): Promise<unknown> => [await scene.data('hello'), await scene.data('more')];

  it('is applied with all its objects', async () => {
    expect([await roll(sync('a')), await now()]).toEqual(['applied', [{ value: 'a' }, undefined]]);
    expect(await scene.api.get(configMapPath('more'))).toBeDefined();
  });

  it('is moved to another commit, and prunes what that does not have', async () => {
    expect([await roll(sync('b')), await now()]).toEqual(['applied', [{ value: 'b' }, undefined]]);
    expect(await scene.api.get(configMapPath('more'))).toBeUndefined();
  });

  it.each([
    ['a manifest that cannot be built', 'e', /^invalid: .*has failed: BuildFailed: /],
    ['a manifest that the cluster refuses', 'c', /^invalid: .*has failed: ReconciliationFailed: .*later.* not found/s],
    ['a commit that does not exist', 'f', /^invalid: .*has failed: GitOperationFailed: .*object not found/],
  ])('%s is invalid, and the last commit is in force when that is reported', async (_name, digit, words) => {
    expect(await roll(sync(digit))).toMatch(words);
    expect(await scene.data('hello')).toEqual({ value: 'b' });
    const { status } = (await flux.kustomization()) ?? {};
    expect(status).toMatchObject({
      lastAttemptedRevision: `main@sha1:${commit('b')}`,
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready', status: 'True' })]),
    });
  });

  it('has failed if its Deployment does not become healthy, and Flux has removed that when it is reported', async () => {
    expect(await roll(sync('d'))).toMatch(/^failed: .*has failed: HealthCheckFailed: health check failed after 30/);
    expect(await scene.data('hello')).toEqual({ value: 'b' });
    expect(await scene.api.list('/apis/apps/v1/namespaces/default/deployments')).toEqual([]);
  });

  it('a failure that Flux has not tried again since does not count for the next attempt', async () => {
    const failing = roll(sync('c'), 20_000);
    await until(async () => {
      const { conditions = [] } = ((await flux.kustomization())?.status ?? {}) as {
        readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
      };
      return conditions.some(({ type, reason }) => type === 'Ready' && reason === 'ReconciliationFailed');
    }, 'Flux has failed');
    await controller.kill();
    expect(await failing).toMatch(/^invalid: .*not done yet: .*Kustomization/s);
    expect((await flux.kustomization())?.status).toMatchObject({ lastAttemptedRevision: `main@sha1:${commit('c')}` });
    const again = roll(sync('c'));
    await until(async () => (await flux.pinned()) === commit('c'), 'the commit is pinned again');
    await scene.api.create('/api/v1/namespaces', { metadata: { name: 'later' } });
    await controller.start();
    expect(await again).toBe('applied');
    expect(await scene.api.get('/api/v1/namespaces/later/configmaps/hello')).toMatchObject({ data: { value: 'c' } });
  });

  it('is removed once Flux has deleted what it had applied', async () => {
    expect(await roll()).toBe('applied');
    expect(await scene.api.get('/api/v1/namespaces/later/configmaps/hello')).toBeUndefined();
    expect([await flux.source(), await flux.kustomization()]).toEqual([undefined, undefined]);
  });
});
