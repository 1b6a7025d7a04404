import { connectBus, type Bus } from '#libs/nats';
import { connectFleet, connectNodeBus, type FleetClient, type NodeBus } from '#libs/client';
import { startService, type RunningService } from '#libs/nest';
import { settingsFrom, SILENT } from '#libs/process';
import { natsFixture, report, until } from '#libs/testing';
import { service as inventory } from '../service.js';

const NODE = 'n1.dc1';

describe('a node that sends no heartbeats', () => {
  const nats = natsFixture();
  let service: RunningService;
  let bus: Bus;
  let node: NodeBus;
  let client: FleetClient;
  let seq = 0;
  beforeAll(async () => {
    service = await startService(inventory, {
      connection: { servers: nats.server.url },
      settings: settingsFrom({ SLUICE_HEALTH_SECONDS: '0', SLUICE_SILENT_SECONDS: '1' }),
      logger: SILENT,
    });
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    node = await connectNodeBus({ node: NODE, connection: bus });
    client = await connectFleet({ servers: [nats.server.url], timeoutMs: 5_000 });
  });
  afterAll(async () => {
    await client.close();
    await node.close();
    await bus.close();
    await service.close();
  });

  /** How many facts say that it was heard from again. */
  const heard = async (): Promise<number> => {
    let count = 0;
    const { signal } = new AbortController();
    for await (const _ of client.events({ subject: 'node.heard.*', follow: false, signal })) count += 1;
    return count;
  };
  const isShown = (state: string) =>
    until(async () => (await client.get('nodes', NODE))?.state === state, `it is ${state}`);

  it.each(['announced', 'applied', 'invalid', 'failed', 'drifted', 'progress'] as const)(
    'is heard from again through its report: %s',
    async (kind) => {
      await node.report(report(NODE, 'x', { seq: ++seq }));
      await isShown('silent');
      const before = await heard();
      await node.report(report(NODE, 'x', { kind, seq: ++seq }));
      // It is silent again a second later, so that a busy machine may never show it as ready.
      await until(async () => (await heard()) === before + 1, 'it is heard');
    },
  );
});
