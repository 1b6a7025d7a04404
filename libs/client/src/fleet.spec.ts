import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, ensureTopology } from '#libs/nats';
import { natsFixture, startNatsServer, type NatsServer } from '#libs/testing';
import { connectFleet, type FleetClient } from './fleet.js';
import { connectNodeBus } from './node-bus.js';

test('a user without a permission is told so, and not that the server does not answer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'));
  const server = await startNatsServer({
    dataDir: join(folder, 'data'),
    config: 'authorization { users: [{ user: r, password: r, permissions: { publish: ["$JS.API.INFO"] } }] }',
  });
  try {
    const fleet = await connectFleet({ servers: server.url, user: 'r', password: 'r' });
    await expect(fleet.list('nodes')).rejects.toThrow(
      /^the nats-server at nats:\S+ does not let this user do that: Permissions Violation for Publish to "\$JS\.API\..*Give the user that permission/,
    );
    await fleet.close();
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

describe('a user of an account without JetStream', () => {
  const servers: NatsServer[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });
  const connectAs = async (config: string): Promise<FleetClient> => {
    const server = await startNatsServer({ config });
    servers.push(server);
    return connectFleet({ servers: server.url, user: 'a', password: 'a' });
  };

  test('is told so, and not that Sluice is missing', async () => {
    const fleet = await connectAs(
      'accounts { A: { users: [{ user: a, password: a }] }, B: { jetstream: enabled, users: [{ user: b, password: b }] } }',
    );
    const { server } = fleet;
    const refused = {
      name: 'NoJetStreamError',
      message: `the nats-server at ${server} has no JetStream for the account of this user: set jetstream: enabled in that account in the server's config, or connect as a user of another account`,
    };
    await expect(fleet.list('nodes')).rejects.toMatchObject(refused);
    await expect(fleet.publishChange('cli', '{}')).rejects.toMatchObject(refused);
    await expect(fleet.request('ops.node.why', { node: 'n1' })).rejects.toMatchObject(refused);
    expect(await fleet.inspect()).toMatchObject({ server: { url: server, lacksJetStream: 'account' }, topology: [] });
    await fleet.close();
    const node = await connectNodeBus({ node: 'n1', servers: server, user: 'a', password: 'a' });
    await expect(node.lease()).rejects.toThrow(
      'the account of this user needs JetStream, or what accounts of nodes import',
    );
    await node.close();
  });

  test('of the system account is told the same', async () => {
    const fleet = await connectAs('accounts { SYS: { users: [{ user: a, password: a }] } }\nsystem_account: SYS');
    await expect(fleet.list('nodes')).rejects.toThrow('connect as a user of another account');
    await fleet.close();
  });
});

test('a server that does not answer is named once', async () => {
  const servers = 'nats://127.0.0.1:1';
  await expect(connectFleet({ servers, timeoutMs: 500 })).rejects.toThrow(
    /^no nats-server answers at nats:\/\/127\.0\.0\.1:1: (?!.*127\.0\.0\.1:1: ).*$/,
  );
});

describe('a missing bucket', () => {
  const nats = natsFixture();

  test('is not a server without Sluice', async () => {
    const fleet = await connectFleet({ servers: nats.server.url });
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    try {
      await expect(fleet.list('status')).rejects.toThrow(/^stream not found/);
      await ensureTopology(bus);
      await bus.jsm.streams.delete('KV_status');
      await expect(fleet.list('status')).rejects.toThrow(/^the stream KV_status is missing at .*restart the services/);
    } finally {
      await bus.close();
      await fleet.close();
    }
  });
});

describe('a service that does not answer', () => {
  const nats = natsFixture();

  test('may still act on a request, unless the request only reads', async () => {
    const fleet = await connectFleet({ servers: nats.server.url, timeoutMs: 300 });
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    try {
      bus.nc.subscribe('ops.>');
      await bus.nc.flush();
      const question = async (subject: string) =>
        fleet.request(subject, {}).catch((error: unknown) => (error as Error).message.replace(/^.*: is/, 'is'));
      expect(await question('ops.node.why')).toBe('is the service running?');
      expect(await question('ops.config.plan')).toBe('is the service running?');
      expect(await question('ops.rollout.abort')).toBe(
        'is the service running? It may still act on the request: check before you repeat it',
      );
    } finally {
      await bus.close();
      await fleet.close();
    }
  });

  test('is not called missing when the connection is closed before it has answered', async () => {
    const fleet = await connectFleet({ servers: nats.server.url });
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    try {
      const pinged = new Promise((resolve) => bus.nc.subscribe('$SRV.PING', { callback: resolve }));
      await bus.nc.flush();
      const missing = fleet.missingServices();
      const refused = expect(missing).rejects.toThrow('the connection was closed');
      await pinged;
      await fleet.close();
      await refused;
    } finally {
      await bus.close();
    }
  });
});
