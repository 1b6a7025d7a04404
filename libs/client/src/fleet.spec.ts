import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, ensureTopology } from '#libs/nats';
import { natsFixture, startNatsServer } from '#libs/testing';
import { connectFleet } from './fleet.js';

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

describe('a missing bucket', () => {
  const nats = natsFixture();

  test('is not a server without Sluice', async () => {
    const fleet = await connectFleet({ servers: nats.server.url });
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    try {
      await expect(fleet.list('status')).rejects.toThrow(/^stream not found/);
      await ensureTopology(bus);
      await bus.jsm.streams.delete('KV_status');
      await expect(fleet.list('status')).rejects.toThrow(/^a stream or bucket is missing at .*sluice doctor/);
    } finally {
      await bus.close();
      await fleet.close();
    }
  });
});
