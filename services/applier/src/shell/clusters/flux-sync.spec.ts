import { describeOnClusters, establish, FLUX_DEFINITIONS, until, type LeanCluster } from '#libs/testing';
import type { ConfigEntry, NodeReport } from '#libs/contracts';
import { ClusterScene, config, configMap, objects } from './cluster.fixture.js';
import { commit, FluxRole, sync } from './flux.fixture.js';

const outcome = ({ verdict, reason }: NodeReport): string | undefined =>
  verdict === 'applied' ? verdict : `${verdict}: ${reason}`;

describeOnClusters('a FluxSync', 2, (clusters) => {
  let scene: ClusterScene;
  let flux: FluxRole;
  beforeAll(() => establish((clusters()[0] as LeanCluster).api, FLUX_DEFINITIONS));
  beforeEach(async () => {
    scene = new ClusterScene(clusters()[0] as LeanCluster);
    flux = new FluxRole(scene.api);
    await scene.joined();
  });
  afterEach(async () => {
    await scene.end();
    await flux.remove();
  });

  /** Grants a lease for this fragment, or for none, and plays Flux until it is reported. */
  const roll = async (
    play: () => Promise<void>,
    fragment?: ConfigEntry,
    applyMs = 60_000,
  ): Promise<string | undefined> => {
    const lease = scene.bus.grant(config(...(fragment === undefined ? [] : [fragment])), { applyMs });
    await play();
    return outcome(await scene.bus.reported((report) => report.lease === lease));
  };
  const works = async (digit: string): Promise<void> => {
    await flux.asked(digit);
    await flux.fetches(digit);
    await flux.applies(digit);
  };
  /** Long enough for an applier to look at least once. */
  const looked = async (): Promise<void> => {
    const beats = scene.bus.beats.length;
    await until(() => scene.bus.beats.length > beats + 75, 'the applier has looked');
  };

  it('becomes a pinned source and a Kustomization, as the field manager of Sluice', async () => {
    expect(await roll(() => works('a'), sync('a', { path: './clusters/prod', timeout: '3m' }))).toBe('applied');
    expect(await flux.source()).toMatchObject({
      metadata: { labels: { 'applyset.kubernetes.io/part-of': expect.stringMatching(/^applyset-/) } },
      spec: { url: 'https://git.example.com/team/apps', ref: { branch: 'main', commit: commit('a') } },
    });
    expect(await flux.kustomization()).toMatchObject({
      metadata: {
        managedFields: expect.arrayContaining([expect.objectContaining({ manager: 'sluice', operation: 'Apply' })]),
      },
      spec: { path: './clusters/prod', prune: true, wait: true, sourceRef: { kind: 'GitRepository', name: 'apps' } },
    });
  });

  it('counts as applied only once Flux has applied exactly its revision', async () => {
    expect(await roll(() => works('a'), sync('a'))).toBe('applied');
    const before = scene.bus.reports.length;
    const reports: number[] = [];
    const play = async (): Promise<void> => {
      await flux.asked('b');
      // Ready=True still speaks of the last revision: of the source, then of the Kustomization.
      await flux.applies('a');
      await looked();
      reports.push(scene.bus.reports.length - before);
      await flux.fetches('b');
      await flux.applies('a');
      await looked();
      reports.push(scene.bus.reports.length - before);
      await flux.applies('b');
    };
    expect([await roll(play, sync('b')), reports]).toEqual(['applied', [0, 0]]);
  });

  it('is invalid if Flux cannot apply the revision, in its words, and the last one is pinned again', async () => {
    expect(await roll(() => works('a'), sync('a'))).toBe('applied');
    const play = async (): Promise<void> => {
      await flux.asked('b');
      await flux.fetches('b');
      await flux.cannotApply('b', 'ReconciliationFailed', 'ConfigMap/nowhere/hello namespace not specified');
      await works('a');
    };
    expect(await roll(play, sync('b'))).toBe(
      'invalid: Kustomization.kustomize.toolkit.fluxcd.io/default/apps has failed: ReconciliationFailed: ConfigMap/nowhere/hello namespace not specified',
    );
    expect(await flux.pinned()).toBe(commit('a'));
  });

  it('is tried again with the same revision, and the old failure does not count', async () => {
    expect(await roll(() => works('a'), sync('a'))).toBe('applied');
    const fails = async (): Promise<void> => {
      await flux.asked('b');
      await flux.fetches('b');
      await flux.cannotApply('b', 'ReconciliationFailed', 'a webhook denied the request');
    };
    // Flux is too slow to bring back the last revision.
    expect(await roll(fails, sync('b'), 15_000)).toMatch(
      /^invalid: .*a webhook denied the request; not done yet: GitRepository\.\S+\/apps: .*; Kustomization\.\S+\/apps: /,
    );
    const again = async (): Promise<void> => {
      await flux.asked('b');
      await flux.fetches('b');
      await looked();
      await flux.applies('b');
    };
    expect(await roll(again, sync('b'))).toBe('applied');
  });

  it('has failed if what it applied does not become healthy', async () => {
    const play = async (): Promise<void> => {
      await flux.asked('a');
      await flux.fetches('a');
      await flux.cannotApply('a', 'HealthCheckFailed', 'timeout waiting for: [Deployment/prod/web]');
    };
    expect(await roll(play, sync('a'))).toBe(
      'failed: Kustomization.kustomize.toolkit.fluxcd.io/default/apps has failed: HealthCheckFailed: timeout waiting for: [Deployment/prod/web]',
    );
    expect([await flux.source(), await flux.kustomization()]).toEqual([undefined, undefined]);
  });

  it('is invalid if its commit does not exist', async () => {
    const play = async (): Promise<void> => {
      await flux.asked('a');
      await flux.cannotFetch('failed to checkout and determine revision: unable to clone: object not found');
    };
    expect(await roll(play, sync('a'))).toBe(
      'invalid: GitRepository.source.toolkit.fluxcd.io/default/apps has failed: GitOperationFailed: failed to checkout and determine revision: unable to clone: object not found',
    );
  });

  it('waits while a source does not answer', async () => {
    const play = async (): Promise<void> => {
      await flux.asked('a');
      await flux.cannotFetch('dial tcp: connection refused');
      await works('a');
    };
    expect(await roll(play, sync('a'))).toBe('applied');
  });

  it('names what Flux has not done in time, and removes it', async () => {
    const { verdict, reason } = await scene.bus.roll(config(sync('a')), { applyMs: 15_000 });
    expect([verdict, reason]).toEqual([
      'failed',
      expect.stringMatching(
        /because this was not ready: GitRepository\.\S+\/apps: Flux has not handled generation 1 yet; Kustomization\.\S+\/apps: Flux has not handled generation 1 yet$/,
      ),
    ]);
    expect([await flux.source(), await flux.kustomization()]).toEqual([undefined, undefined]);
  });

  it('removes both objects when it is deleted, and lets Flux prune', async () => {
    expect(await roll(() => works('a'), sync('a'))).toBe('applied');
    await flux.addFinalizer();
    const before = scene.bus.reports.length;
    let reports: number | undefined;
    const prune = async (): Promise<void> => {
      await until(async () => (await flux.source()) === undefined, 'the source is gone');
      await looked();
      reports = scene.bus.reports.length - before;
      await flux.finishDeletion();
    };
    expect([await roll(prune), reports]).toEqual(['applied', 0]);
    expect(await flux.kustomization()).toBeUndefined();
  });

  it('is removed although Flux is gone, and the report names what it has left', async () => {
    expect(await roll(() => works('a'), sync('a'))).toBe('applied');
    await flux.addFinalizer();
    const { verdict, reason } = await scene.bus.roll(config(), { applyMs: 15_000 });
    expect([verdict, reason]).toEqual([
      'applied',
      'not done yet: Kustomization.kustomize.toolkit.fluxcd.io/default/apps: Flux has not deleted what it had applied',
    ]);
  });

  it('pins its revision again if somebody changes it by hand', async () => {
    expect(await roll(() => works('a'), sync('a'))).toBe('applied');
    const path = '/apis/source.toolkit.fluxcd.io/v1/namespaces/default/gitrepositories/apps';
    await scene.api.patch(path, { spec: { ref: { commit: commit('f') } } }, 'kubectl');
    const text = `FluxSync/apps: GitRepository.source.toolkit.fluxcd.io/default/apps: spec.ref.commit is "${commit('f')}" instead of "${commit('a')}"`;
    await scene.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.includes(text));
    const repair = scene.bus.grant(config(sync('a')), {
      applyMs: 60_000,
      kind: 'repair',
      drift: { overwrite: true, differences: [text] },
    });
    await works('a');
    expect(outcome(await scene.bus.reported((report) => report.lease === repair))).toBe('applied');
  });

  it('does not take a source that somebody else has made', async () => {
    const path = '/apis/source.toolkit.fluxcd.io/v1/namespaces/default/gitrepositories/apps';
    const own = {
      apiVersion: 'source.toolkit.fluxcd.io/v1',
      kind: 'GitRepository',
      metadata: { name: 'apps', namespace: 'default' },
      spec: { interval: '1h', url: 'https://git.example.com/other' },
    };
    await scene.apply(path, own, 'flux-cli');
    expect(await roll(() => Promise.resolve(), sync('a'))).toMatch(
      /^invalid: .*GitRepository\.source\.toolkit\.fluxcd\.io\/default\/apps: other managers own some of its fields: flux-cli owns/,
    );
    expect((await flux.source())?.spec).toMatchObject({ url: 'https://git.example.com/other' });
  });

  it('waits for the definitions of Flux', async () => {
    const bare = new ClusterScene(clusters()[1] as LeanCluster);
    try {
      await bare.joined();
      const lease = bare.bus.grant(config(objects('a', [configMap('x', { a: '1' })]), sync('a')), { applyMs: 60_000 });
      await until(() => bare.bus.beats.length > 20, 'the lease has begun');
      await establish(bare.api, FLUX_DEFINITIONS);
      const there = new FluxRole(bare.api);
      await there.asked('a');
      await there.fetches('a');
      await there.applies('a');
      expect(outcome(await bare.bus.reported((report) => report.lease === lease))).toBe('applied');
      await there.remove();
    } finally {
      await bare.end();
    }
  });
});
