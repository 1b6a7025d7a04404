import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAUSE_ANNOTATION } from '#libs/contracts';
import { describeOnKube, establish, NEVER_ENDS, nodePath, OTHER_DEFINITIONS, podPath, until } from '#libs/testing';
import { startFleet, type Fleet } from '../e2e/fleet.js';
import { file, health, manifest, pool } from '../e2e/manifests.js';

const PODS_EACH = 3;
const POOLS = { edge: 2, core: 1, rest: '10%' } as const;
/** Every change needs a drain, and evicted pods may be recreated. */
const POLICY = manifest('DisruptionPolicy', 'drains', { nodeSelector: {}, default: [{ kind: 'drain' }] });

describeOnKube('a fleet of real processes on Kubernetes', (world) => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({
      sizes: [4, 2, 4],
      env: { SLUICE_DRAIN: 'kubernetes', SLUICE_INVENTORY: 'kubernetes', KUBECONFIG: world.cluster.kubeconfig },
    });
    fleet.startService('drain-2');
    for (const node of fleet.nodes) await world.scene.node(node);
    await fleet.ended(
      await fleet.apply(
        health(fleet.gate.url),
        POLICY,
        ...Object.entries(POOLS).map(([name, budget]) => pool(name, budget, { drainTimeout: '60s' })),
      ),
    );
  });
  afterAll(() => fleet?.close());
  afterEach(() => {
    fleet.gate.release();
    fleet.gate.meanwhile = () => Promise.resolve();
    expect(fleet.witness.exceeded).toEqual([]);
  });

  const podsOf = (node: string): readonly string[] =>
    Array.from({ length: PODS_EACH }, (_, i) => `${node.replaceAll('.', '-')}-p${i}`);
  /** Every node has its pods, as a scheduler would have placed them. */
  const populate = async (nodes: readonly string[]): Promise<void> => {
    const there = new Set((await world.scene.api.list('/api/v1/pods')).map(({ metadata }) => metadata.name));
    await Promise.all(
      nodes.flatMap((node) =>
        podsOf(node)
          .filter((name) => !there.has(name))
          .map((name) => world.scene.pod(name, { node, labels: { app: node.replaceAll('.', '-') } })),
      ),
    );
  };
  const cordoned = async (): Promise<readonly string[]> => {
    const all = await world.scene.api.list('/api/v1/nodes');
    return all.filter(({ spec }) => spec?.['unschedulable'] === true).map(({ metadata }) => metadata.name);
  };

  /** The copy of the drain service that leads, according to its log. */
  const leader = (): string => {
    const since = (copy: string): string =>
      readFileSync(join(fleet.data, `${copy}.log`), 'utf8')
        .split('\n')
        .filter((line) => line.includes('"msg":"leads"'))
        .at(-1)
        ?.replace(/^.*"time":"([^"]*)".*$/, '$1') ?? '';
    return ['drain', 'drain-2'].sort((a, b) => (since(a) < since(b) ? 1 : -1))[0] as string;
  };

  test('nodes change only while they are cordoned and drained, and are given back', async () => {
    await populate(fleet.nodes);
    const wrong: string[] = [];
    const seen = new Set<string>();
    fleet.gate.meanwhile = async (node, files) => {
      if (files['/etc/app.conf'] === undefined) return;
      seen.add(node);
      const [isCordoned, pods] = [await world.scene.isCordoned(node), await world.scene.podsOn(node)];
      if (!isCordoned || pods.length > 0) wrong.push(`${node} changes, cordoned ${isCordoned}, with ${pods.join()}`);
    };
    const change = await fleet.apply(file('app', 'v1\n'));
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: 10 });
    expect([wrong, [...seen].sort()]).toEqual([[], [...fleet.nodes].sort()]);
    await until(async () => (await cordoned()).length === 0, 'no node is cordoned');
    const drained = (await fleet.events('node.drained.*'))
      .map(({ body }) => body as { readonly change: string; readonly evicted: number })
      .filter((fact) => fact.change === change);
    expect(drained.map(({ evicted }) => evicted)).toEqual(fleet.nodes.map(() => PODS_EACH));
  });

  test("after a kill -9 of both copies of the drain service nothing is lost, and a person's cordon stays", async () => {
    const [mine = '', theirs = ''] = fleet.nodesOf('edge');
    await populate([mine, theirs]);
    await world.scene.cordon(theirs);
    const [held] = podsOf(mine);
    await world.scene.api.remove(podPath(held as string));
    await world.scene.pod(held as string, { node: mine, annotations: { [NEVER_ENDS]: '' } });
    const change = await fleet.apply(file('killed', 'v1\n', 'edge'));
    await until(
      async () => (await world.scene.api.get(podPath(held as string)))?.metadata.deletionTimestamp !== undefined,
      'the drain is under way',
    );
    for (const copy of ['drain', 'drain-2']) await fleet.processes.kill(copy);
    await world.scene.api.remove(podPath(held as string));
    expect(fleet.folders.files(mine)['/etc/killed.conf']).toBeUndefined();
    for (const copy of ['drain', 'drain-2']) fleet.startService(copy);
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    for (const node of fleet.nodesOf('edge')) await fleet.when('leases', node, ({ phase }) => phase === 'released');
    expect(await cordoned()).toEqual([theirs]);
    await world.scene.uncordon(theirs);
  });

  test('a blocked drain uses the current settings of its pool, even after its copies were killed', async () => {
    const [node = ''] = fleet.nodesOf('rest');
    await populate([node]);
    const [held = ''] = podsOf(node);
    await world.scene.api.remove(podPath(held));
    await world.scene.pod(held, { node, emptyDir: true });
    const change = await fleet.apply({
      ...file('amended', 'v1\n'),
      spec: { ...file('amended', 'v1\n').spec, nodeSelector: { matchLabels: { 'kubernetes.io/hostname': node } } },
    });
    await fleet.when('drains', node, ({ state, reason }) => state === 'draining' && reason.includes('emptyDir'));
    for (const copy of ['drain', 'drain-2']) await fleet.processes.kill(copy);
    await fleet.ended(await fleet.apply(pool('rest', POOLS.rest, { drain: { emptyDir: 'evict' } })));
    for (const copy of ['drain', 'drain-2']) fleet.startService(copy);
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    expect([await world.scene.podsOn(node), fleet.folders.files(node)['/etc/amended.conf']]).toEqual([[], 'v1\n']);
  });

  test('a copy that paused while another finished changes nothing when it continues', async () => {
    const [node = ''] = fleet.nodesOf('edge');
    await populate([node]);
    const [held] = podsOf(node);
    await world.scene.api.remove(podPath(held as string));
    await world.scene.pod(held as string, { node, annotations: { [NEVER_ENDS]: '' } });
    const change = await fleet.apply(file('slept', 'v1\n', 'edge'));
    await until(
      async () => (await world.scene.api.get(podPath(held as string)))?.metadata.deletionTimestamp !== undefined,
      'the drain is under way',
    );
    const slept = leader();
    fleet.processes.freeze(slept);
    await world.scene.api.remove(podPath(held as string));
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    await until(async () => (await cordoned()).length === 0, 'no node is cordoned');
    const before = (await world.scene.api.get(nodePath(node)))?.metadata.resourceVersion;
    expect(leader()).not.toBe(slept);
    fleet.processes.thaw(slept);
    expect(await fleet.ended(await fleet.apply(file('awake', 'v1\n', 'core')))).toMatchObject({ phase: 'committed' });
    await until(async () => (await cordoned()).length === 0, 'no node is cordoned');
    expect((await world.scene.api.get(nodePath(node)))?.metadata.resourceVersion).toBe(before);
  });

  test('a node that is not ready takes a unit of its pool until it is ready, and needs no further one (MCO #699, #4703)', async () => {
    const [waits = '', down = ''] = fleet.nodesOf('core');
    const ready = (status: 'True' | 'False') =>
      world.scene.api.patch(
        `${nodePath(down)}/status`,
        { status: { conditions: [{ type: 'Ready', status }] } },
        'kubelet',
      );
    await ready('False');
    await fleet.when('pools', 'core', ({ unavailable }) =>
      unavailable.some(({ node, because }) => node === down && because === 'NotReady'),
    );
    const change = await fleet.apply(file('down', 'v1\n', 'core'));
    await fleet.when('rollouts', change, ({ stalledBy }) => stalledBy.includes(down));
    expect([fleet.folders.files(down)['/etc/down.conf'], fleet.folders.files(waits)['/etc/down.conf']]).toEqual([
      'v1\n',
      undefined,
    ]);
    expect((await fleet.cli('why', waits)).stdout).toContain(`${down} (NotReady)`);
    await ready('True');
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    expect(fleet.folders.files(waits)['/etc/down.conf']).toBe('v1\n');
  });

  test('a node that another tool has taken gets no lease until it is given back', async () => {
    const [taken = '', other = ''] = fleet.nodesOf('core');
    expect(await fleet.cli('take', taken, '--owner', 'kured', '--reason', 'a new kernel')).toMatchObject({ code: 0 });
    expect((await fleet.cli('take', other, '--owner', 'kured')).stderr).toContain(
      `the budget of pool core is used up: 1 unavailable, 1 allowed: ${taken} (taken by kured: a new kernel)`,
    );
    const change = await fleet.apply(file('taken', 'v1\n', 'core'));
    await fleet.when('rollouts', change, ({ stalledBy }) => stalledBy.includes(taken));
    expect((await fleet.cli('why', other)).stdout).toContain(`${taken} (taken by kured: a new kernel)`);
    expect(fleet.folders.files(other)['/etc/taken.conf']).toBeUndefined();
    expect(await fleet.cli('give', taken, '--owner', 'kured')).toMatchObject({ code: 0 });
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    await until(() => fleet.folders.files(taken)['/etc/taken.conf'] === 'v1\n', 'it follows');
  });

  test('a node that cannot be drained in time is deferred, the rollout continues, and the node gets the config later', async () => {
    const [held = '', free = ''] = fleet.nodesOf('core');
    await fleet.ended(await fleet.apply(pool('core', 1, { drainTimeout: '3s', drain: { onTimeout: 'defer' } })));
    await populate([held, free]);
    await world.scene.budget('core-held', held.replaceAll('.', '-'), 0, PODS_EACH);
    const change = await fleet.apply(file('deferred', 'v1\n', 'core'));
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: 2 });
    const status = await fleet.when('status', held, ({ deferred }) => deferred !== '');
    expect(status.deferred).toMatch(
      /deferred: not drained within 3 s, waiting for .*the budget default\/core-held allows 0 evictions/,
    );
    expect([fleet.folders.files(held)['/etc/deferred.conf'], fleet.folders.files(free)['/etc/deferred.conf']]).toEqual([
      undefined,
      'v1\n',
    ]);
    await world.scene.removeBudget('core-held');
    await until(() => fleet.folders.files(held)['/etc/deferred.conf'] === 'v1\n', 'the node follows');
    await until(async () => (await cordoned()).length === 0, 'no node is cordoned');
  });

  test('a MachineConfigPool that two pools name is paused while their nodes change, through kill -9 of both copies', async () => {
    const { api } = world.scene;
    await establish(api, OTHER_DEFINITIONS);
    const path = '/apis/machineconfiguration.openshift.io/v1/machineconfigpools';
    const object = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigPool' };
    const [ours, theirs] = [`${path}/worker`, `${path}/theirs`];
    await api.create(path, { ...object, metadata: { name: 'worker' }, spec: {} });
    await api.create(path, { ...object, metadata: { name: 'theirs' }, spec: { paused: true } });
    const isPaused = async (one: string): Promise<boolean> => (await api.get(one))?.spec?.['paused'] === true;
    const before = (await api.get(theirs))?.metadata.resourceVersion;
    const pause = [
      { ...object, name: 'worker' },
      { ...object, name: 'theirs' },
    ];
    await fleet.ended(
      await fleet.apply(...(['edge', 'core'] as const).map((name) => pool(name, POOLS[name], { pause }))),
    );
    const nodes = [...fleet.nodesOf('edge'), ...fleet.nodesOf('core')];
    await populate(nodes);
    const [mine = ''] = fleet.nodesOf('core');
    const [held = ''] = podsOf(mine);
    await api.remove(podPath(held));
    await world.scene.pod(held, { node: mine, annotations: { [NEVER_ENDS]: '' } });
    const wrong: string[] = [];
    fleet.gate.meanwhile = async (node, files) => {
      if (files['/etc/paused.conf'] !== undefined && !(await isPaused(ours))) wrong.push(node);
    };
    const killAll = async (): Promise<void> => {
      for (const copy of ['drain', 'drain-2']) await fleet.processes.kill(copy);
      for (const copy of ['drain', 'drain-2']) fleet.startService(copy);
    };
    const change = await fleet.apply(
      manifest('File', 'paused', {
        nodeSelector: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: nodes }] },
        path: '/etc/paused.conf',
        content: 'v1\n',
      }),
    );
    // Right after the pause, before or while the nodes are drained.
    await until(() => isPaused(ours), 'it is paused');
    await killAll();
    for (const node of fleet.nodesOf('edge'))
      await until(() => fleet.folders.files(node)['/etc/paused.conf'] === 'v1\n', `${node} has the file`);
    expect([await isPaused(ours), fleet.folders.files(mine)['/etc/paused.conf']]).toEqual([true, undefined]);
    await fleet.when('drains', mine, ({ state }) => state === 'draining');
    await api.remove(podPath(held));
    // Around the uncordon and the unpause of the last nodes.
    await fleet.when('leases', mine, ({ phase }) => phase === 'uncordoning' || phase === 'released');
    await killAll();
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: nodes.length });
    await until(async () => !(await isPaused(ours)), 'it is unpaused');
    for (const node of nodes) await fleet.when('leases', node, ({ phase }) => phase === 'released');
    expect((await api.get(ours))?.metadata.annotations?.[PAUSE_ANNOTATION]).toBeUndefined();
    expect([wrong, await isPaused(theirs), (await api.get(theirs))?.metadata.resourceVersion]).toEqual([
      [],
      true,
      before,
    ]);
  });
});
