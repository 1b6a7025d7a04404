import { describeOnKube, until } from '#libs/testing';
import { PodFleet, podPath, secretPath } from './pod-fleet.js';

const policy = (name: string): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'Mwan3Policy',
  metadata: { name },
  spec: {
    nodeSelector: { matchLabels: { sdewanPurpose: 'edge' } },
    members: [{ network: 'wan1', metric: 1, weight: 1 }],
  },
});

describeOnKube('network functions in pods', (world) => {
  let fleet: PodFleet;
  /** The pods of the Deployment `router`. */
  let routers: readonly string[];
  beforeAll(async () => {
    fleet = await PodFleet.start(world.cluster);
  });
  afterAll(() => fleet?.close());

  const routerPods = async (): Promise<readonly string[]> =>
    (await fleet.pods('router', 2)).map(({ metadata }) => metadata.name);

  test('the pods of a Deployment and a StatefulSet and a bare pod join when they are ready', async () => {
    await fleet.workload('Deployment', 'router', 2);
    await fleet.workload('StatefulSet', 'gate', 1);
    await fleet.pod('lone');
    await fleet.pods('gate', 1);
    routers = await routerPods();
    for (const name of [...routers, 'gate-0']) await fleet.run(name);
    await fleet.run('lone', false);
    await fleet.untilReady(...routers, 'gate-0');
    await fleet.status('lone', true);
    await fleet.untilReady(...routers, 'gate-0', 'lone');
    const { labels } = (await fleet.client.list('nodes')).get('gate-0.sdewan') ?? {};
    const clusterId = (await world.scene.api.get('/api/v1/namespaces/kube-system'))?.metadata.uid;
    expect(labels).toMatchObject({
      app: 'gate',
      sdewanPurpose: 'edge',
      'sluice.dev/namespace': 'sdewan',
      'sluice.dev/inventory': clusterId,
    });
    expect(await fleet.apply(policy('first'))).toMatchObject({ code: 0 });
    for (const standIn of fleet.standIns.values()) await fleet.has(standIn, 'first');
  });

  test('a deleted pod of a Deployment leaves, and the new one gets everything at once', async () => {
    await fleet.delete(routers[0] as string);
    const before = routers[0] as string;
    await until(async () => (routers = await routerPods()).every((name) => name !== before), 'there is a new pod');
    const created = routers.find((name) => !fleet.standIns.has(name)) as string;
    await until(async () => !(`${before}.sdewan` in (await fleet.nodes())), 'the old one leaves');
    await fleet.has(await fleet.run(created), 'first');
    await fleet.untilReady(...routers, 'gate-0', 'lone');
    const view = (await fleet.client.list('nodes')).get(`${before}.sdewan`);
    expect(view).toMatchObject({ state: 'gone', because: 'removed' });
  });

  test('a replaced pod of a StatefulSet is the same node, and gets everything again', async () => {
    const uid = (await world.scene.api.get(podPath('gate-0')))?.metadata.uid;
    await fleet.delete('gate-0');
    await until(async () => {
      const now = (await world.scene.api.get(podPath('gate-0')))?.metadata.uid;
      return now !== undefined && now !== uid;
    }, 'it is replaced');
    await fleet.has(await fleet.run('gate-0'), 'first');
    await fleet.untilReady(...routers, 'gate-0', 'lone');
  });

  test('a pod that is not ready is silent, deferred, and catches up', async () => {
    await fleet.status('lone', false);
    await until(async () => (await fleet.nodes())['lone.sdewan'] === 'silent', 'it is silent');
    expect(await fleet.apply(policy('second'))).toMatchObject({ code: 0 });
    const lone = fleet.standIns.get('lone');
    expect(lone?.config.list('mwan3/v1/policies').map(({ name }) => name)).toEqual(['first']);
    await fleet.status('lone', true);
    for (const standIn of fleet.standIns.values()) await fleet.has(standIn, 'first', 'second');
    await fleet.untilReady(...routers, 'gate-0', 'lone');
  });

  test('a pod whose Secret is missing or wrong is named with the reason, and served once it is repaired', async () => {
    await fleet.pod('broken', { 'cnf-account-secret': 'other' });
    const broken = await fleet.run('broken');
    const doctor = async (): Promise<string> => (await fleet.cli('doctor')).stdout;
    const missing = 'pod sdewan/broken is not served: its label cnf-account-secret names the Secret other';
    await until(async () => (await doctor()).includes(missing), 'doctor names it');
    expect(fleet.log).toContain(missing);
    const create = (stringData: object): Promise<unknown> =>
      world.scene.api.create('/api/v1/namespaces/sdewan/secrets', { metadata: { name: 'other' }, stringData });
    await create({ password: 'wrong' });
    await until(() => fleet.log.includes('does not let root in'), 'the log says that the password is wrong');
    await until(async () => !(await doctor()).includes(missing), 'the Secret is there');
    expect('broken.sdewan' in (await fleet.nodes())).toBe(false);
    await world.scene.api.patch(secretPath('other'), { stringData: { password: 'secret' } });
    await fleet.has(broken, 'first', 'second');
    await fleet.untilReady(...routers, 'gate-0', 'lone', 'broken');
  });

  test('what was deleted while no applier ran leaves when one starts', async () => {
    await fleet.processes.stop('applier');
    await fleet.delete('broken');
    fleet.startApplier();
    await fleet.untilReady(...routers, 'gate-0', 'lone');
    expect(fleet.log).not.toMatch(/the permission to .* is missing/);
  });

  test('a selector that is wrong is refused with the words of the API server', async () => {
    const { code, stderr } = await fleet.cli('applier', '--targets', 'functions', '--pods', '--selector', 'a b c');
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/--selector a b c cannot be used: unable to parse requirement/),
    ]);
    const context = await fleet.cli('applier', '--targets', 'functions', '--pods', '--kube-context', 'none');
    expect([context.code, context.stderr]).toEqual([2, expect.stringMatching(/has no context none: it has t/)]);
  });
});
