import { natsFixture } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { byNewest } from '#libs/engine';
import { newestSnapshot, putSnapshot } from './snapshots.fixture.js';
import { Snapshots } from './snapshots.js';
import { ensureTopology } from './topology.js';

const newest = (snapshots: Snapshots) => newestSnapshot(snapshots, 'scheduler');

describe('snapshots', () => {
  const nats = natsFixture();
  let bus: Bus;
  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
  });
  afterAll(() => bus.close());

  it('are distinguished by version, and those of another service are not found', async () => {
    const snapshots = new Snapshots(bus);
    await putSnapshot(snapshots, { service: 'merger', version: 1 }, { sequence: 1, state: {} });
    await putSnapshot(snapshots, { service: 'merger', version: 2, loads: [2, 1] }, { sequence: 2, state: {} });
    const stored = (await snapshots.list('merger')).toSorted(byNewest);
    expect(stored.map(({ version, sequence, loads }) => ({ version, sequence, loads }))).toEqual([
      { version: 2, sequence: 2, loads: [2, 1] },
      { version: 1, sequence: 1, loads: [1] },
    ]);
    expect(await snapshots.list('drain')).toEqual([]);
  });

  it('are skipped if a piece is missing, and the previous one is used', async () => {
    const snapshots = new Snapshots(bus);
    for (const sequence of [1, 2])
      await putSnapshot(snapshots, { service: 'validator', version: 1 }, { sequence, state: { sequence } });
    const { nuid } = JSON.parse(
      (
        await bus.stored('OBJ_snapshots', {
          last_by_subj: `$O.snapshots.M.${Buffer.from('validator.v1.b').toString('base64')}`,
        })
      )?.string() ?? '{}',
    ) as { nuid: string };
    await bus.jsm.streams.purge('OBJ_snapshots', { filter: `$O.snapshots.C.${nuid}` });
    await bus.publish(`$O.snapshots.C.${nuid}`, 'another content of another length');
    expect(await newestSnapshot(snapshots, 'validator')).toMatchObject({
      sequence: 1,
      state: { sequence: 1 },
    });
  });

  it('can be read while newer ones are written', async () => {
    const [writer, reader] = [new Snapshots(bus), new Snapshots(bus)];
    const state = { text: 'x'.repeat(200_000) };
    await putSnapshot(writer, { service: 'scheduler', version: 1 }, { sequence: 0, state });
    let written = 0;
    const writes = (async () => {
      for (written = 1; written <= 60; written += 1)
        await putSnapshot(writer, { service: 'scheduler', version: 1 }, { sequence: written, state });
    })();
    while (written <= 60) {
      const found = await newest(reader);
      // A slow reader may find that all slots were overwritten meanwhile, or all but the oldest one.
      if (found === undefined) continue;
      expect(found.sequence).toBeLessThanOrEqual(written);
      expect(found.state).toEqual(state);
    }
    await writes;
    expect((await newest(reader))?.sequence).toBe(60);
  });
});
