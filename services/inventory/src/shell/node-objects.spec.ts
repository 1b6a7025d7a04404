import { connectBus, type Bus } from '#libs/nats';
import { connectFleet, type FleetClient } from '#libs/client';
import { startService, type RunningService } from '#libs/nest';
import { CORDON_ANNOTATION, encodeReport, type NodeView } from '#libs/contracts';
import { settingsFrom, SILENT } from '#libs/process';
import { ApiGate, describeOnKube, nodePath, report, until, startNatsServer, type NatsServer } from '#libs/testing';
import { service as inventory } from '../service.js';

describeOnKube('the inventory on an API server', (world) => {
  let server: NatsServer;
  let bus: Bus;
  let client: FleetClient;
  let gate: ApiGate;
  let service: RunningService;
  beforeAll(async () => {
    server = await startNatsServer();
    gate = await ApiGate.before(world.cluster.access);
    process.env['KUBECONFIG'] = await world.cluster.kubeconfigBy(gate.url);
    service = await startService(inventory, {
      connection: { servers: server.url },
      settings: settingsFrom({
        SLUICE_HEALTH_SECONDS: '0',
        SLUICE_INVENTORY: 'kubernetes',
        SLUICE_SILENT_SECONDS: '3600',
      }),
      logger: SILENT,
      leaderTtlMs: 1_000,
    });
    bus = await connectBus({ servers: server.url, name: 'spec' });
    client = await connectFleet({ servers: [server.url], timeoutMs: 5_000 });
  });
  afterAll(async () => {
    await client.close();
    await bus.close();
    await service.close();
    await gate.close();
    await server.stop();
    delete process.env['KUBECONFIG'];
  });

  /** A node whose applier reports, and whose Node exists. */
  const joins = async (name: string, ready = true): Promise<NodeView> => {
    await world.scene.node(name, {}, ready);
    await bus.publish(`node.announced.${name}`, encodeReport(report(name, 'x', { at: '2026-01-01T00:00:00.000Z' })));
    return untilView(name, ({ uid }) => uid !== '');
  };
  const untilView = async (name: string, holds: (view: NodeView) => boolean): Promise<NodeView> =>
    (await until(async () => {
      const view = await client.get('nodes', name);
      return view !== undefined && holds(view) ? view : undefined;
    }, `the view of ${name}`)) as NodeView;
  const ready = (name: string, status: 'True' | 'False') =>
    world.scene.api.patch(
      `${nodePath(name)}/status`,
      { status: { conditions: [{ type: 'Ready', status }] } },
      'kubelet',
    );

  it('a node that is not ready, or that a person cordons, is unavailable until that is over', async () => {
    const { scene } = world;
    expect((await joins('n1', false)).unavailable).toBe('NotReady');
    await scene.cordon('n1');
    await untilView('n1', ({ unavailable }) => unavailable === 'NotReady, cordoned');
    await ready('n1', 'True');
    await untilView('n1', ({ unavailable }) => unavailable === 'cordoned');
    await scene.uncordon('n1');
    await untilView('n1', ({ unavailable }) => unavailable === '');
  });

  it('a cordon of Sluice counts through its lease, and one that existed before counts as a cordon', async () => {
    const { scene } = world;
    await joins('n2');
    const mark = (found: boolean) =>
      scene.api.patch(
        nodePath('n2'),
        {
          metadata: {
            annotations: { [CORDON_ANNOTATION]: JSON.stringify({ lease: 'n2-l1', alreadyCordoned: found }) },
          },
          spec: { unschedulable: true },
        },
        'sluice',
      );
    await mark(false);
    await ready('n2', 'False');
    expect((await untilView('n2', ({ unavailable }) => unavailable !== '')).unavailable).toBe('NotReady');
    await mark(true);
    await untilView('n2', ({ unavailable }) => unavailable === 'NotReady, cordoned');
  });

  it('a node has the labels of its Node, and changes with them', async () => {
    const { scene } = world;
    await scene.node('n6', { role: 'edge' });
    await bus.publish(
      'node.announced.n6',
      encodeReport(report('n6', 'x', { at: '2026-01-01T00:00:00.000Z', labels: { role: 'own', rack: '7' } })),
    );
    expect((await untilView('n6', ({ uid }) => uid !== '')).labels).toEqual({
      'kubernetes.io/hostname': 'n6',
      role: 'edge',
      rack: '7',
    });
    await scene.api.patch(nodePath('n6'), { metadata: { labels: { role: null, zone: 'a' } } });
    await untilView('n6', ({ labels }) => labels['role'] === 'own' && labels['zone'] === 'a');
  });

  it('a node leaves when its Node is deleted, and joins when a new one has its name', async () => {
    const { scene } = world;
    const { uid } = await joins('n3');
    await scene.api.remove(nodePath('n3'));
    expect(await untilView('n3', ({ state }) => state === 'gone')).toMatchObject({ because: 'deleted', uid: '' });
    await scene.node('n3');
    expect((await untilView('n3', (view) => view.uid !== '')).uid).not.toBe(uid);
  });

  it('a node outside Kubernetes stays, and changes during an outage of the API server are made up for', async () => {
    const { scene } = world;
    await bus.publish('node.announced.router', encodeReport(report('router', 'x', { at: '2026-01-01T00:00:00.000Z' })));
    await untilView('router', ({ state }) => state === 'ready');
    await joins('n4');
    await joins('n5');
    gate.mode = { does: 'refuse', code: 500, reason: 'InternalError' };
    gate.cut();
    await scene.api.remove(nodePath('n4'));
    await scene.cordon('n5');
    gate.about = /watch=1/;
    gate.mode = { does: 'refuse', code: 410, reason: 'Expired' };
    await untilView('n4', ({ state }) => state === 'gone');
    await untilView('n5', ({ unavailable }) => unavailable === 'cordoned');
    expect(await client.get('nodes', 'router')).toMatchObject({ state: 'ready', uid: '' });
    gate.mode = { does: 'pass' };
  });
});
