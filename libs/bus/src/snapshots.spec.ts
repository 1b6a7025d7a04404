import { natsFixture } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { Snapshots } from './snapshots.js';
import { ensureTopology } from './topology.js';

describe('snapshots', () => {
  const nats = natsFixture();
  let bus: Bus;
  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
  });
  afterAll(() => bus.close());

  it('of another version or service are not found', async () => {
    const snapshots = new Snapshots(bus);
    await snapshots.put('merger', 1, { sequence: 1, state: {} });
    expect([await snapshots.get('merger', 2), await snapshots.get('drain', 1)]).toEqual([undefined, undefined]);
  });

  it('can be read while newer ones are written', async () => {
    const [writer, reader] = [new Snapshots(bus), new Snapshots(bus)];
    const state = { text: 'x'.repeat(200_000) };
    await writer.put('scheduler', 1, { sequence: 0, state });
    let writing = true;
    const writes = (async () => {
      for (let sequence = 1; sequence <= 60; sequence += 1) await writer.put('scheduler', 1, { sequence, state });
      writing = false;
    })();
    let seen = 0;
    while (writing) {
      const { sequence } = (await reader.get('scheduler', 1)) ?? { sequence: -1 };
      expect(sequence).toBeGreaterThanOrEqual(seen);
      seen = sequence;
    }
    await writes;
    expect((await reader.get('scheduler', 1))?.sequence).toBe(60);
  });
});
