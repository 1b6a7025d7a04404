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

  /** A node whose applier speaks, and whose Node is there. */
  const joins = async (name: string, ready = true): Promise<NodeView> => {
    await world.scene.node(name, {}, ready);
    await bus.publish(`node.announced.${name}`, encodeReport(report(name, 'x', { at: '2026-01-01T00:00:00.000Z' })));
    return shown(name, ({ uid }) => uid !== '');
  };
  const shown = async (name: string, holds: (view: NodeView) => boolean): Promise<NodeView> =>
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

  it('a node that is not ready, or that somebody cordons, is out of service until that is over', async () => {
    const { scene } = world;
    expect((await joins('n1', false)).unavailable).toBe('NotReady');
    await scene.cordon('n1');
    await shown('n1', ({ unavailable }) => unavailable === 'NotReady, cordoned');
    await ready('n1', 'True');
    await shown('n1', ({ unavailable }) => unavailable === 'cordoned');
    await scene.uncordon('n1');
    await shown('n1', ({ unavailable }) => unavailable === '');
  });

  it('what Sluice cordoned itself counts by its lease, and what it found cordoned by the cordon', async () => {
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
    expect((await shown('n2', ({ unavailable }) => unavailable !== '')).unavailable).toBe('NotReady');
    await mark(true);
    await shown('n2', ({ unavailable }) => unavailable === 'NotReady, cordoned');
  });

  it("the labels of the Node are the node's, and change with it", async () => {
    const { scene } = world;
    await scene.node('n6', { role: 'edge' });
    await bus.publish(
      'node.announced.n6',
      encodeReport(report('n6', 'x', { at: '2026-01-01T00:00:00.000Z', labels: { role: 'own', rack: '7' } })),
    );
    expect((await shown('n6', ({ uid }) => uid !== '')).labels).toEqual({
      'kubernetes.io/hostname': 'n6',
      role: 'edge',
      rack: '7',
    });
    await scene.api.patch(nodePath('n6'), { metadata: { labels: { role: null, zone: 'a' } } });
    await shown('n6', ({ labels }) => labels['role'] === 'own' && labels['zone'] === 'a');
  });

  it('a Node that is deleted is a leave, and one that comes under its name joins', async () => {
    const { scene } = world;
    const { uid } = await joins('n3');
    await scene.api.remove(nodePath('n3'));
    expect(await shown('n3', ({ state }) => state === 'gone')).toMatchObject({ because: 'deleted', uid: '' });
    await scene.node('n3');
    expect((await shown('n3', (view) => view.uid !== '')).uid).not.toBe(uid);
  });

  it('a node outside Kubernetes stays, and what happened while the API server was away is made up for', async () => {
    const { scene } = world;
    await bus.publish('node.announced.router', encodeReport(report('router', 'x', { at: '2026-01-01T00:00:00.000Z' })));
    await shown('router', ({ state }) => state === 'ready');
    await joins('n4');
    await joins('n5');
    gate.mode = { does: 'refuse', code: 500, reason: 'InternalError' };
    gate.cut();
    await scene.api.remove(nodePath('n4'));
    await scene.cordon('n5');
    gate.about = /watch=1/;
    gate.mode = { does: 'refuse', code: 410, reason: 'Expired' };
    await shown('n4', ({ state }) => state === 'gone');
    await shown('n5', ({ unavailable }) => unavailable === 'cordoned');
    expect(await client.get('nodes', 'router')).toMatchObject({ state: 'ready', uid: '' });
    gate.mode = { does: 'pass' };
  });
});
