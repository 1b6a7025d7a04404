import type { ConfigEntry, NodeReport } from '#libs/contracts';
import { ClusterApi } from '#libs/kube/lean';
import { SILENT } from '#libs/process';
import { describeOnClusters, establish, FLUX_DEFINITIONS, TcpProxy, type LeanCluster } from '#libs/testing';
import { ClusterScene, config } from './cluster.fixture.js';
import { hubOf, type Hub } from './cluster-target.js';
import { commit, FluxRole, sync } from './flux.fixture.js';

const NAMESPACE = 'default';
const CALL_MS = 5_000;
const onHub = (digit: string): ConfigEntry => ({
  ...sync(digit),
  spec: { ...sync(digit).spec, namespace: undefined, placement: 'hub' } as unknown as ConfigEntry['spec'],
});
const outcome = ({ verdict, reason }: NodeReport): string | undefined =>
  verdict === 'applied' ? verdict : `${verdict}: ${reason}`;

describeOnClusters('a FluxSync on a hub', 3, (clusters) => {
  let lean: LeanCluster;
  let hub: Hub & { readonly end: () => Promise<void> };
  let one: Rolling;
  let other: Rolling;

  const connect = async (kubeconfig: string): Promise<typeof hub> => {
    const api = await ClusterApi.open({ kubeconfig, timeoutMs: CALL_MS, logger: SILENT });
    const of = hubOf(api, 500, () => undefined);
    const end = async (): Promise<void> => {
      of.reach.stop();
      await api.close();
    };
    return { ...of, end };
  };
  beforeAll(async () => {
    lean = clusters()[0] as LeanCluster;
    await establish(lean.api, FLUX_DEFINITIONS);
  });
  beforeEach(async () => {
    hub = await connect(lean.kubeconfig());
    one = new Rolling('one', clusters()[1] as LeanCluster, lean, hub);
    other = new Rolling('other', clusters()[2] as LeanCluster, lean, hub);
    await Promise.all([one.scene.joined(), other.scene.joined()]);
  });
  afterEach(async () => {
    await Promise.all([one.end(), other.end()]);
    await hub.end();
  });

  const parents = async (): Promise<readonly unknown[]> =>
    (await lean.api.list(`/api/v1/namespaces/${NAMESPACE}/configmaps`)).map(({ metadata }) => metadata.name).sort();

  it('is applied by the Flux of the hub, with the kubeconfig of the cluster and objects of its own', async () => {
    expect(await one.roll(() => one.works('a'), onHub('a'))).toBe('applied');
    expect(await other.roll(() => other.works('b'), onHub('b'))).toBe('applied');
    const [first, second] = [await one.flux.kustomization(), await other.flux.kustomization()];
    expect(first).toMatchObject({
      metadata: { name: 'one.apps', ownerReferences: [{ kind: 'Secret', name: 'one-kubeconfig', uid: '1' }] },
      spec: { kubeConfig: { secretRef: { name: 'one-kubeconfig', key: 'value' } }, sourceRef: { name: 'one.apps' } },
    });
    expect([await one.flux.pinned(), await other.flux.pinned()]).toEqual([commit('a'), commit('b')]);
    const part = 'applyset.kubernetes.io/part-of';
    expect(first?.metadata.labels?.[part]).not.toBe(second?.metadata.labels?.[part]);
    expect(await parents()).toEqual(expect.arrayContaining(['sluice-applied.one', 'sluice-applied.other']));
    expect(await one.scene.api.list(`/api/v1/namespaces/${NAMESPACE}/configmaps`)).toEqual([]);
  });

  it('is rolled back if Flux cannot apply it, and leaves those of other clusters alone', async () => {
    expect(await one.roll(() => one.works('a'), onHub('a'))).toBe('applied');
    expect(await other.roll(() => other.works('a'), onHub('a'))).toBe('applied');
    const play = async (): Promise<void> => {
      await one.flux.asked('b');
      await one.flux.fetches('b');
      await one.flux.cannotApply('b', 'BuildFailed', 'no such kustomization');
      await one.works('a');
    };
    expect(await one.roll(play, onHub('b'))).toBe(
      'invalid: on the hub: Kustomization.kustomize.toolkit.fluxcd.io/default/one.apps has failed: BuildFailed: no such kustomization',
    );
    expect([await one.flux.pinned(), await other.flux.pinned()]).toEqual([commit('a'), commit('a')]);
    expect(await one.roll(() => Promise.resolve())).toBe('applied');
    expect([await one.flux.pinned(), await other.flux.pinned()]).toEqual([undefined, commit('a')]);
  });

  it('is drift if somebody changes it on the hub, and that of another cluster is not', async () => {
    expect(await one.roll(() => one.works('a'), onHub('a'))).toBe('applied');
    expect(await other.roll(() => other.works('a'), onHub('a'))).toBe('applied');
    const path = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${NAMESPACE}/gitrepositories/one.apps`;
    await lean.api.patch(path, { spec: { ref: { commit: commit('f') } } }, 'kubectl');
    const text = `FluxSync/apps: GitRepository.source.toolkit.fluxcd.io/default/one.apps: spec.ref.commit is "${commit('f')}" instead of "${commit('a')}"`;
    await one.scene.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.includes(text));
    expect(other.scene.bus.reports.filter(({ kind }) => kind === 'drifted')).toEqual([]);
  });

  it('is not applied while the hub does not answer, and the change is not to blame', async () => {
    const proxy = await TcpProxy.to(lean.port);
    const gone = await connect(lean.kubeconfig({ server: `https://127.0.0.1:${proxy.port}` }));
    await proxy.cut();
    const cut = new Rolling('cut', clusters()[1] as LeanCluster, lean, gone);
    try {
      await cut.scene.joined();
      expect(await cut.roll(() => Promise.resolve(), onHub('a'))).toMatch(
        /^unreachable: .*on the hub: .*does not answer/,
      );
    } finally {
      await cut.end();
      await gone.end();
    }
  });

  it('names the right that is missing on the hub', async () => {
    const viewer = await connect(lean.kubeconfig({ token: `${lean.access.token}-viewer` }));
    const without = new Rolling('without', clusters()[1] as LeanCluster, lean, viewer);
    try {
      await without.scene.joined();
      expect(await without.roll(() => Promise.resolve(), onHub('a'))).toMatch(
        /^failed: .*on the hub: the user of the kubeconfig lacks a right: .*"viewer" cannot/,
      );
    } finally {
      await without.end();
      await viewer.end();
    }
  });

  it('is refused for a cluster that was not found on a hub', async () => {
    const plain = new ClusterScene(clusters()[1] as LeanCluster);
    try {
      await plain.joined();
      const { verdict, reason } = await plain.bus.roll(config(onHub('a')), { applyMs: 60_000 });
      expect([verdict, reason]).toEqual([
        'failed',
        expect.stringContaining('placement: hub needs an applier that finds its clusters on a hub'),
      ]);
    } finally {
      await plain.end();
    }
  });

  /** A cluster of the hub, and Flux as it handles the objects for it. */
  class Rolling {
    readonly scene: ClusterScene;
    readonly flux: FluxRole;

    constructor(
      private readonly name: string,
      cluster: LeanCluster,
      private readonly on: LeanCluster,
      of: Hub,
    ) {
      const secret = { name: `${name}-kubeconfig`, key: 'value' };
      const owner = { apiVersion: 'v1', kind: 'Secret', name: `${name}-kubeconfig`, uid: '1' };
      const known = { namespace: NAMESPACE, name, secret, owner };
      this.scene = new ClusterScene(cluster, { name: `${name}.${NAMESPACE}`, onHub: known, hub: of });
      this.flux = new FluxRole(on.api, { namespace: NAMESPACE, name: `${name}.apps` });
    }

    async roll(play: () => Promise<void>, ...fragments: readonly ConfigEntry[]): Promise<string | undefined> {
      const lease = this.scene.bus.grant(config(...fragments), { applyMs: 60_000 });
      await play();
      return outcome(await this.scene.bus.reported((one) => one.lease === lease));
    }

    async works(digit: string): Promise<void> {
      await this.flux.asked(digit);
      await this.flux.fetches(digit);
      await this.flux.applies(digit);
    }

    async end(): Promise<void> {
      await this.scene.end();
      await this.flux.remove();
      await this.on.api.remove(`/api/v1/namespaces/${NAMESPACE}/configmaps/sluice-applied.${this.name}`);
    }
  }
});
