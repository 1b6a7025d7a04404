import { CHANGES } from '#libs/contracts';
import { natsFixture } from '#libs/testing';
import { publishChange, trimChanges } from './changes.js';
import { connectBus, type Bus } from './connection.js';
import { ensureTopology } from './topology.js';

describe('trimming the changes', () => {
  const nats = natsFixture();
  let bus: Bus;
  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    for (let i = 1; i <= 10; i += 1) await bus.publish('config.desired.me', 'x'.repeat(1_000));
  });
  afterAll(() => bus.close());
  const bounds = async (): Promise<readonly number[]> => {
    const { first_seq, last_seq } = (await bus.streamInfo(CHANGES)).state;
    return [first_seq, last_seq];
  };

  it('deletes what the merger has read, and nothing that it has not', async () => {
    expect(await trimChanges(bus, 7, 5_000)).toBe(7);
    expect(await bounds()).toEqual([8, 10]);
    expect(await trimChanges(bus, 7, 0)).toBe(0);
  });

  it('keeps all of a small stream', async () => {
    expect(await trimChanges(bus, 10)).toBe(0);
    expect(await bounds()).toEqual([8, 10]);
  });

  it('keeps the numbers of changes when all of them are deleted', async () => {
    expect(await trimChanges(bus, 10, 0)).toBe(3);
    expect((await bus.publish('config.desired.me', 'next')).seq).toBe(11);
  });

  it('is not what makes room: a full stream refuses a change, and loses none', async () => {
    await bus.jsm.streams.update(CHANGES, { max_bytes: 2_000 });
    const large = publishChange(bus, { source: 'me', text: 'x'.repeat(3_000) });
    await expect(large).rejects.toThrow(/^the stream CHANGES is full: .* sluice doctor/i);
    expect((await bounds())[1]).toBe(11);
  });
});
