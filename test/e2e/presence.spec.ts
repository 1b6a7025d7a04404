import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, pool } from './manifests.js';
import type { Files } from './node-folders.js';

/** Heartbeats come every 10 s. A busy machine may delay one. */
const SILENT_SECONDS = 15;
const [CORE, REST] = ['core-01.dc1', 'rest-01.dc1'] as const;
const app = (version: string): string => `app ${version} on {{ node.name }}\n`;
const appOn = (node: string, version: string): Files => ({ '/etc/app.conf': `app ${version} on ${node}\n` });

describe('silence, skipping and new labels', () => {
  const stage = fleetFixture({
    sizes: [2, 2, 3],
    own: [CORE, REST],
    env: { SLUICE_SILENT_SECONDS: String(SILENT_SECONDS) },
  });

  afterEach(() => expect(stage.fleet.witness.exceeded).toEqual([]));

  test('a silent node is deferred, holds its unit, and gets the committed config when it is heard', async () => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(file('app', app('v1'))))).toMatchObject({
      phase: 'committed',
      nodes: 7,
    });
    fleet.processes.freeze(REST);
    await fleet.when('nodes', REST, ({ state }) => state === 'silent');
    fleet.witness.isDown(REST);
    await fleet.when('pools', 'rest', ({ unavailable }) =>
      unavailable.some(({ node, because }) => node === REST && because === 'silent'),
    );
    const change = await fleet.apply(file('app', app('v2')));
    // Its pool has a budget of one, so the other nodes of that pool wait for it. Those of other pools do not.
    await until(
      () =>
        [...fleet.nodesOf('edge'), ...fleet.nodesOf('core')].every(
          (node) => fleet.folders.files(node)['/etc/app.conf'] === appOn(node, 'v2')['/etc/app.conf'],
        ),
      'the other pools have it',
    );
    await fleet.when('rollouts', change, ({ deferred, stalledBy }) => deferred === 1 && stalledBy.includes(REST));
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, node.startsWith('rest') ? 'v1' : 'v2')));
    expect(await fleet.client.request('ops.node.why', { node: fleet.nodesOf('rest')[1] as string })).toMatchObject({
      because: 'budget',
      holders: [REST],
    });
    fleet.witness.isBack(REST);
    fleet.processes.thaw(REST);
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    await fleet.when('status', REST, ({ hash, desired, deferred }) => hash === desired && deferred === '');
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v2')));
    const facts = (await fleet.events(`node.*.${REST.replace('.', '_')}`)).map(({ subject }) => subject.split('.')[1]);
    expect(facts.filter((fact) => fact === 'silent' || fact === 'heard' || fact === 'left')).toEqual([
      'silent',
      'heard',
    ]);
  });

  test('a rollout continues without a skipped node, which gets the committed config when it returns', async () => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(pool('core', 1, { applyTimeout: '4s' })))).toMatchObject({
      phase: 'committed',
    });
    fleet.processes.freeze(CORE);
    const change = await fleet.publish({ apply: [file('app', app('v3'))], strategy: { maxFailures: 1 } });
    await fleet.when('rollouts', change, ({ stalledBy }) => stalledBy.includes(CORE));
    expect(await fleet.cli('skip', CORE, '--reason', 'it burns')).toMatchObject({ code: 0 });
    await fleet.when('status', CORE, ({ skipped }) => skipped !== '');
    // The lease that it gets after that lasts until the node is thawed. Another try would come a minute later.
    expect(await fleet.ended(await fleet.apply(pool('core', 1)))).toMatchObject({ phase: 'committed', nodes: 0 });
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, node === CORE ? 'v2' : 'v3')));
    fleet.processes.thaw(CORE);
    await fleet.when('status', CORE, ({ hash, desired, skipped }) => hash === desired && skipped === '');
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v3')));
  });

  test('a node that wakes after a rollback, and never started its lease, does not count as rolled back', async () => {
    const { fleet } = stage;
    expect(await fleet.ended(await fleet.apply(pool('core', 1, { applyTimeout: '4s' })))).toMatchObject({
      phase: 'committed',
    });
    fleet.processes.freeze(CORE);
    const change = await fleet.apply(file('app', app('v4')));
    await fleet.when('rollouts', change, ({ phase, pools }) => phase === 'reverted' && pools['core']?.done === 1);
    fleet.processes.thaw(CORE);
    const { pools } = await fleet.when('rollouts', change, ({ pools: now }) => now['core']?.done === 2);
    expect(pools['core']).toMatchObject({ nodes: 2, done: 2, untouched: 2 });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, 'v3')));
    expect(await fleet.ended(await fleet.apply(pool('core', 1)))).toMatchObject({ phase: 'committed' });
  });

  test('a node with new labels gets the config that they select, and loses the old one', async () => {
    const { fleet } = stage;
    expect(
      await fleet.ended(await fleet.apply(file('edge', 'edge\n', 'edge'), file('rest', 'rest\n', 'rest'))),
    ).toMatchObject({ phase: 'committed', nodes: 5 });
    expect(fleet.folders.files(REST)).toEqual({ ...appOn(REST, 'v3'), '/etc/rest.conf': 'rest\n' });
    await fleet.processes.stop(REST);
    fleet.startApplier(REST, 'edge');
    await until(() => fleet.folders.files(REST)['/etc/edge.conf'] === 'edge\n', `${REST} has the file for the edge`);
    await fleet.when('status', REST, ({ hash, desired, pool: now }) => hash === desired && now === 'edge');
    expect(fleet.folders.files(REST)).toEqual({ ...appOn(REST, 'v3'), '/etc/edge.conf': 'edge\n' });
    await fleet.when('pools', 'edge', ({ members }) => members === 3);
  });
});
