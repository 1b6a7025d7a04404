import { readFileSync, rmSync } from 'node:fs';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, health, pool } from './manifests.js';
import type { Files } from './node-folders.js';

interface WhyAnswer {
  readonly because: string;
  readonly holders: readonly string[];
}

/** Nodes whose applier can be frozen and stopped. The pool of the first one has only one node. */
const [CORE, EDGE, REST] = ['core-01.dc1', 'edge-01.dc1', 'rest-01.dc1'] as const;
const ORIGINALS = { '/etc/banner.conf': 'as the machine came\n' };
const app = (version: string): string => `app ${version} on {{ node.name }}\n`;
const appOn = (node: string, version: string): Files => ({ '/etc/app.conf': `app ${version} on ${node}\n` });
const hasVersion =
  (version: string) =>
  (_node: string, files: Files): boolean =>
    files['/etc/app.conf']?.startsWith(`app ${version} `) === true;

describe('nodes that do not answer, join and leave', () => {
  const stage = fleetFixture({ own: [CORE, EDGE, REST], originals: ORIGINALS });

  afterEach(() => {
    stage.fleet.gate.release();
    expect(stage.fleet.witness.exceeded).toEqual([]);
  });

  /** A policy applies immediately and touches no node. */
  const coreAnswersWithin = async (applyTimeout: string): Promise<void> => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(pool('core', 1, { applyTimeout })))).toMatchObject({
      phase: 'committed',
      nodes: 0,
    });
  };

  test('a node that never answers makes the rollout fail, and holds its unit until it is heard', async () => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(health(fleet.gate.url), file('app', app('v1'))))).toMatchObject({
      phase: 'committed',
    });
    await coreAnswersWithin('4s');
    fleet.processes.freeze(CORE);
    const change = await fleet.apply(file('app', app('v2')));
    await fleet.when('leases', CORE, (lease) => lease.change === change);
    fleet.witness.isDown(CORE);
    expect(await fleet.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await fleet.shows('leases', CORE, { change, because: 'unknown' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v1')));

    const next = await fleet.apply(file('side', 'one', 'core'));
    const neighbour = fleet.nodesOf('core')[1] as string;
    await until(
      async () => (await fleet.client.request<WhyAnswer>('ops.node.why', { node: neighbour })).because === 'budget',
      'the pool has no room',
    );
    expect(await fleet.client.request<WhyAnswer>('ops.node.why', { node: neighbour })).toMatchObject({
      because: 'budget',
      holders: [CORE],
      change: next,
    });
    expect(await fleet.client.request<WhyAnswer>('ops.node.why', { node: CORE })).toMatchObject({
      because: 'unknown',
      holders: [CORE],
    });
    await coreAnswersWithin('60s');
    fleet.witness.isBack(CORE);
    fleet.processes.thaw(CORE);
    expect(await fleet.ended(next)).toMatchObject({ phase: 'committed' });
    // It was unknown when this rollout started, so it is deferred. It gets the committed config afterwards.
    const all = fleet.filesWith((node) => ({
      ...appOn(node, 'v1'),
      ...(node.startsWith('core') ? { '/etc/side.conf': 'one' } : {}),
    }));
    await until(() => fleet.folders.files(CORE)['/etc/side.conf'] === 'one', `${CORE} has the committed file`);
    expect(fleet.files()).toEqual(all);
    expect(await fleet.ended(await fleet.publish({ delete: [{ kind: 'File', name: 'side' }] }))).toMatchObject({
      phase: 'committed',
      nodes: 6,
    });
  });

  test('if failures are allowed, the rollout ends without the node, which gets the committed config when it returns', async () => {
    const { fleet } = stage;
    await coreAnswersWithin('4s');
    fleet.processes.freeze(CORE);
    const change = await fleet.publish({ apply: [file('app', app('v3'))], strategy: { maxFailures: 1 } });
    await fleet.when('leases', CORE, (lease) => lease.change === change);
    fleet.witness.isDown(CORE);
    await fleet.when('leases', CORE, (lease) => lease.because === 'unknown');
    await coreAnswersWithin('60s');
    await fleet.when('pools', 'core', ({ unavailable }) => unavailable.some(({ node }) => node === CORE));
    await fleet.shows('changes', change, { phase: 'rolling' });
    await fleet.when('rollouts', change, ({ stalledBy }) => stalledBy.includes(CORE));
    fleet.witness.isBack(CORE);
    fleet.processes.thaw(CORE);
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    await fleet.when('status', CORE, ({ hash, desired, deferred }) => hash === desired && deferred === '');
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v3')));
  });

  test('a node that answers long after its lease has rolled back on its own', async () => {
    const { fleet } = stage;
    await coreAnswersWithin('5s');
    fleet.gate.hold((node, files) => node === CORE && hasVersion('v4')(node, files));
    const change = await fleet.apply(file('app', app('v4')));
    await until(() => fleet.gate.held.has(CORE), `${CORE} is applying`);
    fleet.processes.freeze(CORE);
    fleet.witness.isDown(CORE);
    expect(fleet.folders.files(CORE)).toMatchObject(appOn(CORE, 'v4'));
    fleet.gate.release();
    expect(await fleet.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    fleet.processes.thaw(CORE);
    await until(async () => {
      // If this machine is busy, the guard has killed the applier by now, and systemd would start it again.
      if (!fleet.processes.isRunning(CORE)) fleet.startApplier(CORE, 'core');
      return (await fleet.client.get('leases', CORE))?.phase === 'released';
    }, `${CORE} has reported`);
    fleet.witness.isBack(CORE);
    // It is `invalid` if the guard killed it: something in the change made it hang.
    await fleet.when('status', CORE, ({ verdict, restored }) => restored && ['failed', 'invalid'].includes(verdict));
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v3')));
    await coreAnswersWithin('60s');
  });

  test('a node that joins gets the committed config, and one that leaves no longer counts', async () => {
    const { fleet } = stage;
    const [joining, members] = ['edge-11.dc1', 10];
    fleet.startApplier(joining, 'edge');
    await fleet.when('nodes', joining, ({ state }) => state === 'ready');
    await fleet.when('status', joining, ({ hash, desired }) => hash === desired && desired !== '');
    expect(fleet.folders.files(joining)).toEqual(appOn(joining, 'v3'));
    await fleet.when('pools', 'edge', (view) => view.members === members + 1);
    const kinds = (await fleet.events(`node.lease.granted.edge.${joining.replace('.', '_')}`)).map(
      ({ body }) => (body as { readonly kind: string }).kind,
    );
    expect(kinds).toEqual(['join']);

    await fleet.processes.stop(joining);
    expect(await fleet.client.request('ops.node.remove', { node: joining, force: true, by: 'e2e' })).toEqual({
      node: joining,
      removed: true,
    });
    await fleet.when('pools', 'edge', (view) => view.members === members);
    const change = await fleet.apply(file('app', app('v5')));
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: 40 });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v5')));
    expect(fleet.folders.files(joining)).toEqual(appOn(joining, 'v3'));
  });

  test('a node that returns with an empty disk gets its desired config', async () => {
    const { fleet } = stage;
    const before = await fleet.client.get('status', REST);
    await fleet.processes.kill(REST);
    for (const folder of [fleet.folders.root(REST), fleet.folders.state(REST)]) rmSync(folder, { recursive: true });
    fleet.startApplier(REST, 'rest');
    await fleet.when(
      'status',
      REST,
      ({ incarnation, hash, desired }) => incarnation === (before?.incarnation ?? 0) + 1 && hash === desired,
    );
    expect(fleet.folders.files(REST)).toEqual(appOn(REST, 'v5'));
  });

  test('an applier that is killed during a change continues at its next start', async () => {
    const { fleet } = stage;
    fleet.gate.hold((node, files) => node === EDGE && hasVersion('v6')(node, files));
    const change = await fleet.apply(file('app', app('v6')));
    await until(() => fleet.gate.held.has(EDGE), `${EDGE} is applying`);
    await fleet.processes.kill(EDGE);
    expect(JSON.parse(readFileSync(fleet.folders.journal(EDGE), 'utf8'))).toMatchObject({
      journal: { work: { phase: 'forward', change } },
    });
    fleet.gate.release();
    fleet.startApplier(EDGE, 'edge');
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    await fleet.shows('status', EDGE, { verdict: 'applied', deferred: '' });
    // The node with the empty disk also lost the files that existed before Sluice.
    const { [REST]: renewed, ...others } = fleet.files();
    expect(renewed).toEqual(appOn(REST, 'v6'));
    expect({ ...others, [REST]: { ...ORIGINALS, ...renewed } }).toEqual(fleet.filesWith((node) => appOn(node, 'v6')));
  });
});
