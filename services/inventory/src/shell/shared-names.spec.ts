import { connectBus, ServiceNotes, type Bus } from '#libs/nats';
import { connectNodeBus, type NodeBus } from '#libs/client';
import { startService, type RunningService } from '#libs/nest';
import { settingsFrom, SILENT } from '#libs/process';
import { natsFixture, report, until } from '#libs/testing';
import { service as inventory } from '../service.js';

describe('two appliers with one name', () => {
  const nats = natsFixture();
  let service: RunningService;
  let bus: Bus;
  let node: NodeBus;
  beforeAll(async () => {
    service = await startService(inventory, {
      connection: { servers: nats.server.url },
      settings: settingsFrom({}),
      logger: SILENT,
    });
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    node = await connectNodeBus({ node: 'n1', connection: bus });
  });
  afterAll(async () => {
    await node.close();
    await bus.close();
    await service.close();
  });

  it('are named until one of them has missed its heartbeats, also if nobody sends one any more', async () => {
    await node.report(report('n1', 'x', { seq: 1 }));
    const words = (): readonly string[] => service.app.get(ServiceNotes).all.map((note) => note.words);
    await until(() => {
      for (const incarnation of [1, 2]) node.alive({ node: 'n1', incarnation, nonce: 1, everyMs: 1_000, pacedMs: 0 });
      return words().length > 0;
    }, 'they are named');
    expect(words()).toEqual(['two appliers use the name n1, or did so within the last 4s']);
    await until(() => words().length === 0, 'they are forgotten');
  });
});
