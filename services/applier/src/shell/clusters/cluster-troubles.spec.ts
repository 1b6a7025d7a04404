import { describeOnClusters, TcpProxy, testAuthority, until, type LeanCluster } from '#libs/testing';
import type { ConfigEntry } from '#libs/contracts';
import { freePort } from '#libs/process';
import { newJournal } from '../../core/index.js';
import { EMPTY_HASH } from '../state/config-text.js';
import { clusterTarget } from './cluster-target.js';
import {
  ClusterScene,
  config,
  configMap,
  configMapPath,
  definition,
  namespace,
  objects,
  thing,
} from './cluster.fixture.js';

const POLICY = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';

describeOnClusters('a cluster', 2, (clusters) => {
  let scene: ClusterScene;
  let cluster: LeanCluster;
  beforeEach(() => {
    [cluster] = clusters() as [LeanCluster];
    scene = new ClusterScene(cluster);
  });
  afterEach(async () => {
    await scene.end();
    for (const name of ['x', 'y']) await scene.api.remove(configMapPath(name));
  });

  const roll = async (...fragments: readonly ConfigEntry[]): Promise<string> => {
    const { verdict, reason } = await scene.bus.roll(config(...fragments), { applyMs: 60_000 });
    return verdict === 'applied' ? verdict : `${verdict}: ${reason}`;
  };
  const changes: unknown[] = [];
  /** Why a cluster cannot be used with this kubeconfig. */
  const whyNot = async (kubeconfig: string): Promise<unknown> => {
    const timing = { clock: scene.clock, checkMs: 60_000 };
    const target = clusterTarget({ name: 'c-1', labels: {}, kubeconfig }, timing);
    const opened = await target.open(
      { fence: () => Promise.resolve(1_000), journal: newJournal('c-1', EMPTY_HASH) } as never,
      (...change) => void changes.push(change),
      () => undefined,
    );
    await opened.reach.look();
    opened.reach.stop();
    await opened.close();
    return changes.pop();
  };

  it('gets a definition and an object of its kind in one change, and drops both', async () => {
    await scene.joined();
    expect(await roll(objects('a', [thing]), objects('b', [definition]))).toBe('applied');
    expect(await scene.api.get('/apis/example.dev/v1/namespaces/default/things/x')).toMatchObject({ size: 3 });
    expect(await roll()).toBe('applied');
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.dev';
    await until(async () => (await scene.api.get(path)) === undefined, 'the definition is gone');
  });

  it('gets a definition back that somebody has deleted, with the objects of its kind', async () => {
    await scene.joined();
    const both = config(objects('a', [thing]), objects('b', [definition]));
    expect((await scene.bus.roll(both)).verdict).toBe('applied');
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.dev';
    await scene.api.remove(path);
    await until(async () => (await scene.api.get(path)) === undefined, 'the definition is gone');
    const differences = [
      'KubeObjects/b: CustomResourceDefinition.apiextensions.k8s.io/things.example.dev: is missing',
      'KubeObjects/a: Thing.example.dev/default/x: is missing',
    ];
    const { verdict, reason } = await scene.bus.roll(both, { kind: 'repair', drift: { overwrite: true, differences } });
    expect([verdict, reason]).toEqual(['applied', '']);
    expect(await scene.api.get('/apis/example.dev/v1/namespaces/default/things/x')).toMatchObject({ size: 3 });
    expect(await roll()).toBe('applied');
    await until(async () => (await scene.api.get(path)) === undefined, 'the definition is gone again');
  });

  it('that lacks a definition waits for it, and then names it', async () => {
    await scene.joined();
    const other = { ...thing, apiVersion: 'other.dev/v1', kind: 'Other' };
    expect(await roll(objects('a', [configMap('x', { a: '1' }), other]))).toBe(
      'failed: KubeObjects/a: Other.other.dev/default/x: the cluster has no Other in other.dev/v1: its CustomResourceDefinition is missing. Apply it first, or in the same change',
    );
    expect(await scene.data('x')).toBeUndefined();
  });

  it('gets a definition in the meantime', async () => {
    await scene.joined();
    scene.bus.grant(config(objects('a', [thing])), { applyMs: 120_000 });
    await until(() => scene.bus.beats.length > 20, 'the lease has begun');
    await scene.api.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    expect((await scene.bus.reported(({ verdict }) => verdict !== '')).verdict).toBe('applied');
    expect(await roll()).toBe('applied');
    await scene.api.remove('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.dev');
  });

  it('that does not admit an object says which policy refuses it', async () => {
    const validations = [{ expression: "!has(object.data) || !('a' in object.data)", message: 'a is not allowed' }];
    const tried = async (): Promise<number> =>
      (await scene.api.call('POST', '/api/v1/namespaces/default/configmaps?dryRun=All', configMap('z', { a: '1' })))
        .code;
    const matchConstraints = {
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
    };
    await scene.api.create(POLICY, {
      metadata: { name: 'no-a' },
      spec: { failurePolicy: 'Fail', matchConstraints, validations },
    });
    await scene.api.create(`${POLICY}`.replace('policies', 'policybindings'), {
      metadata: { name: 'no-a' },
      spec: { policyName: 'no-a', validationActions: ['Deny'] },
    });
    try {
      // The policy takes effect a moment later.
      await until(async () => (await tried()) !== 201, 'the policy takes effect');
      await scene.joined();
      expect(await roll(objects('a', [configMap('y', { b: '1' }), configMap('x', { a: '1' })]))).toMatch(
        /^invalid: KubeObjects\/a: ConfigMap\/default\/x: the cluster (refuses|does not admit) it: .*ValidatingAdmissionPolicy 'no-a' with binding 'no-a' denied request: a is not allowed/,
      );
      expect(await scene.data('y')).toBeUndefined();
    } finally {
      await scene.api.remove(`${POLICY}/no-a`);
      await scene.api.remove(`${POLICY}`.replace('policies', 'policybindings/no-a'));
      await until(async () => (await tried()) === 201, 'the policy has no effect any more');
    }
  });

  it('whose user lacks a right names it', async () => {
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }];
    await scene.api.create('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      metadata: { name: 'view-maps' },
      rules,
    });
    await scene.api.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'view-maps' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view-maps' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'viewers' }],
    });
    const token = `${cluster.access.token}-viewer`;
    await until(async () => {
      const review = { resourceAttributes: { verb: 'get', resource: 'configmaps', namespace: 'default' } };
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const { body } = await scene.api.call('POST', path, { spec: { ...review, user: 'viewer', groups: ['viewers'] } });
      return (body as { readonly status?: { readonly allowed?: boolean } }).status?.allowed;
    }, 'the role takes effect');
    await scene.start('one', cluster.kubeconfig({ token }));
    await scene.bus.reported(({ kind }) => kind === 'announced');
    expect(await roll(objects('a', [configMap('x', { a: '1' })]))).toBe(
      'failed: KubeObjects/a: ConfigMap/default/x: the user of the kubeconfig lacks a right: configmaps "x" is forbidden: User "viewer" cannot patch resource "configmaps" in API group "" in the namespace "default". Grant it there',
    );
  });

  it('with expired credentials, a certificate of somebody else, or no server says so', async () => {
    expect(await whyNot(cluster.kubeconfig())).toBeUndefined();
    expect(await whyNot(cluster.kubeconfig({ token: 'expired' }))).toEqual([
      false,
      `${cluster.access.server} does not accept the credentials of the kubeconfig (401 Unauthorized): they have expired or were revoked, or are for another cluster. Replace the kubeconfig`,
    ]);
    const { ca } = await testAuthority();
    expect(await whyNot(cluster.kubeconfig({ ca }))).toEqual([
      false,
      expect.stringContaining('presents a certificate that the CA in the kubeconfig cannot verify') as string,
    ]);
    expect(await whyNot(cluster.kubeconfig({ server: `https://127.0.0.1:${await freePort()}` }))).toEqual([
      false,
      expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+ does not answer: .*ECONNREFUSED/) as string,
    ]);
  });

  it('with a kubeconfig that would run a command is not opened', async () => {
    const kubeconfig = cluster.kubeconfig().replace(/"user":\{"token":"[^"]*"\}/, '"user":{"exec":{"command":"sh"}}');
    expect(await whyNot(kubeconfig)).toEqual([
      false,
      'the kubeconfig gets its credentials from a command (sh), which Sluice does not run: use the token of a service account or a client certificate',
    ]);
  });

  it('is asked by probes: for an object, for a condition, and that there is none', async () => {
    const probe = (name: string, kube: object): ConfigEntry => ({
      kind: 'Probe',
      name,
      spec: { retries: 0, kube: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'x', ...kube } },
    });
    const maps = objects('a', [configMap('x', { a: '1' })]);
    await scene.joined();
    expect(await roll(maps, probe('here', {}), probe('gone', { name: 'z', absent: true }))).toBe('applied');
    expect(await roll(maps, probe('z', { name: 'z' }))).toMatch(
      /^failed: the probe z must pass after this change, but fails: ConfigMap\/default\/z does not exist/,
    );
    expect(await roll(maps, probe('ready', { condition: 'Ready' }))).toMatch(
      /^failed: .* ConfigMap\/default\/x has no condition Ready/,
    );
    expect(await roll(maps, { kind: 'Probe', name: 'f', spec: { file: { path: '/a', absent: true } } })).toBe(
      'failed: Probe/f: a file probe needs an applier on the machine itself: use http or tcp or kube for this target',
    );
  });

  it('is not taken by a second node', async () => {
    await scene.joined();
    expect(await roll(objects('a', [configMap('x', { a: '1' })]))).toBe('applied');
    await scene.api.patch(configMapPath('sluice-applied'), { data: { node: 'c-2' } }, 'sluice');
    expect(await roll(objects('a', [configMap('x', { a: '2' })]))).toBe(
      'failed: KubeObjects/a: ConfigMap/default/x: the cluster already gets its objects as the node c-2: two nodes must not have one cluster. If c-2 is gone for good, delete the ConfigMap default/sluice-applied there',
    );
    expect(await scene.data('x')).toEqual({ a: '1' });
  });

  it('that lost its ConfigMap may be another one for a new applier, until somebody says that it is the right one', async () => {
    const first = await scene.joined();
    expect(await roll(objects('a', [configMap('x', { a: '1' })]))).toBe('applied');
    await first.stop(AbortSignal.abort());
    await scene.api.remove(configMapPath('sluice-applied'));
    const logged: string[] = [];
    const second = await scene.start('two', cluster.kubeconfig(), (reason) => logged.push(reason));
    await until(() => logged.length > 0, 'it does not answer');
    expect(logged[0]).toContain(
      'this one has no ConfigMap default/sluice-applied. Replace it, or, if it is right, tell',
    );
    const own = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'sluice-applied', namespace: 'default' } };
    await scene.apply(configMapPath('sluice-applied'), { ...own, data: { node: 'c-1' } }, 'kubectl');
    const again = async (): Promise<boolean> => (await roll(objects('a', [configMap('x', { a: '2' })]))) === 'applied';
    await until(again, 'it answers again');
    await second.stop(AbortSignal.abort());
  });

  it('gets its ConfigMap back with the next change, if somebody has deleted or changed it', async () => {
    await scene.joined();
    const wanted = { node: 'c-1' };
    for (const harm of [
      () => Promise.resolve(),
      () => scene.api.remove(configMapPath('sluice-applied')),
      () => scene.api.patch(configMapPath('sluice-applied'), { data: null }, 'kubectl'),
    ]) {
      await harm();
      expect(await roll(objects('a', [configMap('x', { a: harm.toString() })]))).toBe('applied');
      expect(await scene.data('sluice-applied')).toEqual(wanted);
    }
  });

  it('lists the kinds and namespaces of its objects, as ApplySets do', async () => {
    await scene.joined();
    const inside = configMap('x', {}, { namespace: 'set' });
    expect(await roll(objects('a', [namespace('set'), inside]))).toBe('applied');
    const parent = await scene.api.get(configMapPath('sluice-applied'));
    expect(parent?.metadata.annotations).toEqual({
      'applyset.kubernetes.io/tooling': 'sluice/v1',
      'applyset.kubernetes.io/contains-group-kinds': 'ConfigMap,Namespace',
      'applyset.kubernetes.io/additional-namespaces': 'set',
    });
    const id = parent?.metadata.labels?.['applyset.kubernetes.io/id'];
    const found = await scene.api.get('/api/v1/namespaces/set/configmaps/x');
    expect([id, found?.metadata.labels?.['applyset.kubernetes.io/part-of']]).toEqual([id, id]);
    expect(id).toMatch(/^applyset-[\w-]{43}-v1$/);
    expect(await roll()).toBe('applied');
  });

  it('that is cut off in the middle of a change is unreachable, and rolled back when it answers again', async () => {
    const proxy = await TcpProxy.to(cluster.port);
    await scene.start('one', cluster.kubeconfig({ server: `https://127.0.0.1:${proxy.port}` }));
    await scene.bus.reported(({ kind }) => kind === 'announced');
    expect(await roll(objects('a', [configMap('x', { a: '1' })]))).toBe('applied');
    const stop = scene.api.watch(
      '/api/v1/namespaces/default/configmaps?watch=1',
      (_, { metadata }) => metadata.name === 'y' && void proxy.cut(),
      () => undefined,
    );
    const many = Array.from({ length: 20 }, (_, i) => configMap(`z${i}`, {}));
    const { verdict, restored } = await scene.bus.roll(
      config(objects('a', [configMap('x', { a: '2' }), configMap('y', {}), ...many])),
      { applyMs: 60_000 },
    );
    stop();
    expect([verdict, restored]).toEqual(['unreachable', false]);
    await proxy.restore();
    await scene.bus.reported(({ restored: whole, seq }) => whole && seq > 3);
    expect([await scene.data('x'), await scene.data('y')]).toEqual([{ a: '1' }, undefined]);
    await proxy.cut();
  });

  it('has one owner: what a paused copy sends late is refused', async () => {
    await scene.joined('one');
    expect(await roll(objects('a', [configMap('x', { a: '1' })]))).toBe('applied');
    await scene.start('two');
    expect(await roll(objects('a', [configMap('x', { a: '2' })]))).toBe('applied');
    await until(() => scene.lost.length > 0, 'the first copy has lost the cluster');
    expect([scene.lost, await scene.data('x')]).toEqual([['one'], { a: '2' }]);
  });
});
