import { SERVICES } from '#libs/contracts';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { file, health } from './manifests.js';
import type { Files } from './node-folders.js';

const app = (version: string): string => `app ${version} on {{ node.name }}\n`;
const appOn = (node: string, version: string): Files => ({ '/etc/app.conf': `app ${version} on ${node}\n` });
const onEdge = (node: string): Files => (node.startsWith('edge') ? { '/etc/more.conf': 'more\n' } : {});
const hasVersion =
  (version: string) =>
  (_node: string, files: Files): boolean =>
    files['/etc/app.conf']?.startsWith(`app ${version} `) === true;

describe('two copies of every service', () => {
  const stage = fleetFixture({ copies: 2 });

  afterEach(() => {
    stage.fleet.gate.release();
    expect(stage.fleet.witness.exceeded).toEqual([]);
  });

  /** Publishes a version, and waits until five nodes are in the middle of it. */
  const begin = async (version: string): Promise<string> => {
    const { fleet } = stage;
    fleet.gate.hold(hasVersion(version));
    const change = await fleet.apply(health(fleet.gate.url), file('app', app(version)));
    await until(() => fleet.gate.held.size === 5, 'every unit is in use');
    return change;
  };

  /** Lets the change continue, and checks that it ends well. */
  const finish = async (change: string, version: string): Promise<void> => {
    const { fleet } = stage;
    fleet.gate.release();
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => appOn(node, version)));
  };

  test('decide everything once', async () => {
    const { fleet } = stage;
    const change = await fleet.apply(health(fleet.gate.url), file('app', app('v1')));
    await finish(change, 'v1');
    const leases = (await fleet.events('node.lease.granted.>')).map(
      ({ body }) => (body as { readonly lease: string }).lease,
    );
    expect(leases).toHaveLength(40);
    expect(new Set(leases).size).toBe(40);
    const wanted = [...SERVICES].sort().map((name) => `${name} 2`);
    // The other copy of a service may start later, and a busy one answers later.
    await until(
      async () =>
        (await fleet.client.inspect()).services.map(({ name, copies }) => `${name} ${copies}`).join() === wanted.join(),
      'both copies of every service answer',
    );
  });

  test('continue with one copy after the other was killed, one service after another', async () => {
    const { fleet } = stage;
    const change = await begin('v2');
    for (const service of SERVICES) await fleet.processes.kill(service);
    await finish(change, 'v2');
  });

  test('continue a rollout after its scheduler was killed and no copy ran for a while', async () => {
    const { fleet } = stage;
    const change = await begin('v3');
    await fleet.processes.kill('scheduler-2');
    fleet.gate.release();
    await until(
      () =>
        fleet.gate.held.size === 0 &&
        fleet.nodes.filter((node) => fleet.folders.files(node)['/etc/app.conf'] === appOn(node, 'v3')['/etc/app.conf'])
          .length === 5,
      'those under way have finished',
    );
    fleet.startService('scheduler');
    await finish(change, 'v3');
  });

  test('continue where they were after all services were killed at once', async () => {
    const { fleet } = stage;
    const change = await begin('v4');
    await Promise.all(
      SERVICES.flatMap((service) => [service, `${service}-2`])
        .filter((name) => fleet.processes.isRunning(name))
        .map((name) => fleet.processes.kill(name)),
    );
    const more = await fleet.apply(file('more', 'more\n', 'edge'));
    for (const service of SERVICES) fleet.startService(service);
    fleet.gate.release();
    for (const [one, nodes] of [
      [change, 40],
      [more, 10],
    ] as const)
      expect(await fleet.ended(one)).toMatchObject({ phase: 'committed', nodes });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => ({ ...appOn(node, 'v4'), ...onEdge(node) })));
  });

  test('lose nothing that nats-server accepted when it is killed during a rollout', async () => {
    const { fleet } = stage;
    const change = await begin('v5');
    const small = await Promise.all([1, 2, 3].map((n) => fleet.apply(file(`small-${n}`, `${n}\n`, 'core'))));
    fleet.server.kill();
    fleet.gate.release();
    await fleet.server.restart();
    for (const one of [change, ...small]) expect(await fleet.ended(one)).toMatchObject({ phase: 'committed' });
    const onCore = (node: string): Files =>
      node.startsWith('core')
        ? { '/etc/small-1.conf': '1\n', '/etc/small-2.conf': '2\n', '/etc/small-3.conf': '3\n' }
        : {};
    expect(fleet.files()).toEqual(
      fleet.filesWith((node) => ({ ...appOn(node, 'v5'), ...onEdge(node), ...onCore(node) })),
    );
    await until(
      async () => (await fleet.client.list('leases').catch(() => undefined))?.size === 40,
      'the views are there',
    );
    expect((await fleet.client.inspect()).poison).toEqual([]);
  });
});
