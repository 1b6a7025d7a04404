import { KEEP_PAUSED_ANNOTATION, PAUSE_ANNOTATION } from '#libs/contracts';
import { describeOnKube, establish, NEVER_ENDS, OTHER_DEFINITIONS, podPath, until } from '#libs/testing';
import { DrainStage } from './drain-stage.fixture.js';

const API = 'machineconfiguration.openshift.io/v1';
const POOLS = `/apis/${API}/machineconfigpools`;

describeOnKube('a MachineConfigPool whose nodes are drained', (world) => {
  let stage: DrainStage;
  beforeAll(async () => {
    await establish(world.scene.api, OTHER_DEFINITIONS);
    stage = await DrainStage.start();
    await stage.serve(world.cluster.kubeconfig);
  });
  afterAll(() => stage?.stop());

  const pausing = (...names: readonly string[]) => ({
    drain: { pause: names.map((name) => ({ apiVersion: API, kind: 'MachineConfigPool', name })) },
  });
  const machinePool = (name: string, spec: object = {}) =>
    world.scene.api.create(POOLS, { apiVersion: API, kind: 'MachineConfigPool', metadata: { name }, spec });
  const look = async (name: string) => {
    const object = await world.scene.api.get(`${POOLS}/${name}`);
    return {
      paused: object?.spec?.['paused'] ?? false,
      mark: object?.metadata.annotations?.[PAUSE_ANNOTATION],
      revision: object?.metadata.resourceVersion,
    };
  };
  const isPaused = async (name: string): Promise<boolean> => (await look(name)).paused === true;
  const person = (name: string, paused: boolean) => world.scene.api.patch(`${POOLS}/${name}`, { spec: { paused } });
  /** A node with a pod that ends only when the test removes it. */
  const heldNode = async (node: string): Promise<void> => {
    await world.scene.node(node);
    await world.scene.pod(`${node}-web`, { node, annotations: { [NEVER_ENDS]: '' } });
  };
  const letGo = (node: string) => world.scene.api.remove(podPath(`${node}-web`));
  const giveBack = async (node: string, lease: string): Promise<void> => {
    await stage.settle(node, lease);
    await stage.untilFact('node.uncordoned', lease);
  };

  it('is paused before the first node is cordoned, and until the last one is given back', async () => {
    await machinePool('worker');
    for (const node of ['a1', 'a2']) await heldNode(node);
    const first = await stage.grant('a1', pausing('worker'));
    await stage.untilFact('node.cordoned', first);
    expect(await look('worker')).toMatchObject({ paused: true, mark: `{"lease":"${first}","pool":"edge"}` });
    const second = await stage.grant('a2', pausing('worker'));
    await stage.untilFact('node.cordoned', second);
    await letGo('a1');
    await stage.untilFact('node.drained', first);
    await giveBack('a1', first);
    expect(await look('worker')).toMatchObject({ paused: true, mark: `{"lease":"${second}","pool":"edge"}` });
    await letGo('a2');
    await stage.untilFact('node.drained', second);
    expect(await isPaused('worker')).toBe(true);
    await giveBack('a2', second);
    expect(await look('worker')).toMatchObject({ paused: false, mark: undefined });
  });

  it('is paused only when it no longer updates its nodes, and the drain says what it waits for', async () => {
    await machinePool('updating');
    const updating = (status: 'True' | 'False') =>
      world.scene.api.patch(`${POOLS}/updating/status`, {
        status: { conditions: [{ type: 'Updating', status, lastTransitionTime: null }] },
      });
    await updating('True');
    await world.scene.node('b1');
    const lease = await stage.grant('b1', pausing('updating'));
    expect(await stage.untilFact('node.drain.blocked', lease)).toMatchObject({
      reason:
        'MachineConfigPool.machineconfiguration.openshift.io updating cannot be paused yet: its condition Updating is True',
    });
    expect([await isPaused('updating'), await world.scene.isCordoned('b1')]).toEqual([false, false]);
    await updating('False');
    await stage.untilFact('node.drained', lease);
    expect(await isPaused('updating')).toBe(true);
    await giveBack('b1', lease);
    expect(await isPaused('updating')).toBe(false);
  });

  it('stays as it is if somebody else had paused it', async () => {
    await machinePool('theirs', { paused: true });
    const before = await look('theirs');
    await world.scene.node('c1');
    const lease = await stage.grant('c1', pausing('theirs'));
    await stage.untilFact('node.drained', lease);
    await giveBack('c1', lease);
    expect(await look('theirs')).toEqual(before);
  });

  it('stays paused if a person pauses it again in the middle, or wants it kept so', async () => {
    for (const name of ['again', 'kept']) await machinePool(name);
    await world.scene.node('e1');
    const lease = await stage.grant('e1', pausing('again', 'kept'));
    await stage.untilFact('node.drained', lease);
    for (const paused of [false, true]) await person('again', paused);
    await world.scene.api.patch(`${POOLS}/kept`, { metadata: { annotations: { [KEEP_PAUSED_ANNOTATION]: 'a fan' } } });
    await giveBack('e1', lease);
    for (const name of ['again', 'kept']) expect(await look(name)).toMatchObject({ paused: true, mark: undefined });
  });

  it('is paused again if a person unpauses it during the drain', async () => {
    await machinePool('restored');
    await heldNode('f1');
    const lease = await stage.grant('f1', pausing('restored'));
    await stage.untilFact('node.cordoned', lease);
    await person('restored', false);
    await until(() => isPaused('restored'), 'it is paused again');
    await letGo('f1');
    await stage.untilFact('node.drained', lease);
    await giveBack('f1', lease);
    expect(await isPaused('restored')).toBe(false);
  });

  it('must exist before the node is drained, and may be gone when it is given back', async () => {
    await world.scene.node('g1');
    const lease = await stage.grant('g1', pausing('late'));
    expect((await stage.untilFact('node.drain.blocked', lease)).reason).toMatch(
      /MachineConfigPool\S* late cannot be paused yet: Kubernetes has no such object; .* spec.pause of Pool\/edge$/,
    );
    await machinePool('late');
    await stage.untilFact('node.drained', lease);
    await world.scene.api.remove(`${POOLS}/late`);
    await giveBack('g1', lease);
    expect(await world.scene.isCordoned('g1')).toBe(false);
  });

  it('is unpaused after the drain although the pool stopped naming it', async () => {
    for (const name of ['before', 'after']) await machinePool(name);
    await heldNode('h1');
    const lease = await stage.grant('h1', pausing('before'));
    await stage.untilFact('node.cordoned', lease);
    await stage.amend('h1', lease, pausing('after'));
    await until(() => isPaused('after'), 'the other one is paused');
    await letGo('h1');
    await stage.untilFact('node.drained', lease);
    await giveBack('h1', lease);
    expect([await look('before'), await look('after')]).toMatchObject([
      { paused: false, mark: undefined },
      { paused: false, mark: undefined },
    ]);
  });

  it('is unpaused by a copy that starts after another ended between the uncordon and the unpause', async () => {
    await machinePool('left');
    await world.scene.node('i1');
    const lease = await stage.grant('i1', pausing('left'));
    await stage.untilFact('node.drained', lease);
    await stage.stopServing();
    await stage.settle('i1', lease);
    // What the ended copy had done.
    await world.scene.api.patch(
      '/api/v1/nodes/i1',
      {
        spec: { unschedulable: null },
        metadata: { annotations: { 'sluice.dev/cordon': null, 'sluice.dev/uncordoned-for': lease } },
      },
      'sluice',
    );
    expect(await isPaused('left')).toBe(true);
    await stage.serve(world.cluster.kubeconfig);
    await stage.untilFact('node.uncordoned', lease);
    expect(await look('left')).toMatchObject({ paused: false, mark: undefined });
  });

  it('does not keep a node cordoned if the right to unpause it is missing, and is unpaused once it is there', async () => {
    const { scene, cluster } = world;
    await machinePool('refused');
    await scene.node('j1');
    const lease = await stage.grant('j1', pausing('refused'));
    await stage.untilFact('node.drained', lease);
    await stage.stopServing();
    await scene.api.create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'pauses' } });
    const { token } = (await scene.api.create('/api/v1/namespaces/default/serviceaccounts/pauses/token', { spec: {} }))
      .status as { token: string };
    const grant = async (name: string, rules: readonly object[]): Promise<void> => {
      const rbac = '/apis/rbac.authorization.k8s.io/v1';
      await scene.api.create(`${rbac}/clusterroles`, { metadata: { name }, rules });
      await scene.api.create(`${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'pauses' }],
      });
    };
    await grant('drains', [
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch', 'patch'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
      { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
    ]);
    await stage.serve(await cluster.kubeconfigOf('pauses', token));
    await stage.settle('j1', lease);
    await until(async () => !(await scene.isCordoned('j1')), 'the node is uncordoned');
    expect([await isPaused('refused'), await stage.facts('node.uncordoned', lease)]).toEqual([true, []]);
    await scene.node('j2');
    const next = await stage.grant('j2', pausing('refused'));
    expect((await stage.untilFact('node.drain.blocked', next)).reason).toMatch(
      /"refused" is forbidden: .*cannot get resource "machineconfigpools".*; grant the drain service get and patch on it/,
    );
    // As in the chart, for these objects only.
    await grant('pauses', [
      {
        apiGroups: ['machineconfiguration.openshift.io'],
        resources: ['machineconfigpools'],
        resourceNames: ['refused'],
        verbs: ['get', 'patch'],
      },
    ]);
    await stage.untilFact('node.uncordoned', lease);
    await stage.untilFact('node.drained', next);
    await giveBack('j2', next);
    expect(await look('refused')).toMatchObject({ paused: false, mark: undefined });
  });
});
