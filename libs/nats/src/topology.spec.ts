import { nanos } from '@nats-io/nats-core';
import { isAtLeast, SILENT } from '#libs/process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OBJECTS } from '#libs/contracts';
import { natsFixture, startNatsServer } from '#libs/testing';
import { Bus, connectBus } from './connection.js';
import { TopologyError } from './errors.js';
import { compareTopology, ensureTopology } from './topology.js';

describe('the streams and buckets', () => {
  const nats = natsFixture();
  const buses: Bus[] = [];
  const connected = async (): Promise<Bus> => {
    const bus = await connectBus({ servers: nats.server.url, name: 'spec', logger: SILENT });
    buses.push(bus);
    return bus;
  };
  beforeEach(async () => {
    const bus = await connected();
    for await (const { config } of bus.jsm.streams.list()) await bus.jsm.streams.delete(config.name);
  });
  afterEach(async () => {
    await Promise.all(buses.splice(0).map((bus) => bus.close()));
  });

  it('are created by the first process, even if five start at once', async () => {
    const starters = await Promise.all([1, 2, 3, 4, 5].map(connected));
    await Promise.all(starters.map((bus) => ensureTopology(bus)));
    expect(await compareTopology(buses[0] as Bus)).toEqual([]);
  });

  it('are named if they are missing', async () => {
    expect(await compareTopology(buses[0] as Bus)).toContain('LEDGER is missing');
  });

  it('are corrected if possible', async () => {
    const bus = buses[0] as Bus;
    await ensureTopology(bus);
    await bus.jsm.streams.update('REPORTS', { max_age: nanos(60_000), duplicate_window: nanos(30_000) });
    expect(await compareTopology(bus)).toEqual([expect.stringMatching(/^REPORTS: max_age is 60000000000/)]);
    await ensureTopology(bus);
    expect(await compareTopology(bus)).toEqual([]);
  });

  it('are an error if that is impossible, and it names the difference', async () => {
    const bus = buses[0] as Bus;
    await bus.jsm.streams.add({ name: 'CHANGES', subjects: ['config.desired.>'], storage: 'memory' });
    const error = await ensureTopology(bus).then(
      () => undefined,
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(TopologyError);
    expect((error as Error).message).toMatch(/CHANGES: storage is "memory", but should be "file"/);
  });

  it('need a server of version 2.12', () => {
    expect(
      ['2.12.0', '2.12.15', '2.13.0-RC.1', '3.0.0', '2.11.9', '2.9.10'].map((version) => isAtLeast(version, '2.12.0')),
    ).toEqual([true, true, true, true, false, false]);
  });

  it('push leases and status to the nodes', async () => {
    const bus = buses[0] as Bus;
    await ensureTopology(bus);
    const pushed = bus.nc.subscribe('push.*.n1', { max: 1 });
    await bus.js.publish('$KV.leases.n1', '{}');
    for await (const message of pushed) expect(message.subject).toBe('push.leases.n1');
  });
});

describe('a server with little storage', () => {
  const withStorage = async (megabytes: number, work: (bus: Bus) => Promise<void>): Promise<void> => {
    const dataDir = mkdtempSync(join(tmpdir(), 'sluice-small-'));
    const config = `jetstream: { store_dir: ${JSON.stringify(dataDir)}, max_file_store: ${megabytes}MB }`;
    const server = await startNatsServer({ dataDir, config });
    try {
      const bus = await connectBus({ servers: server.url, name: 'spec', logger: SILENT });
      await work(bus).finally(() => bus.close());
    } finally {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  };

  it('gets a smaller object store', async () => {
    await withStorage(600, async (bus) => {
      await ensureTopology(bus);
      expect(await compareTopology(bus)).toEqual([]);
      expect((await bus.streamInfo(OBJECTS)).config.max_bytes).toBe(256 * 2 ** 20);
    });
  });

  it('is refused if it has no room for changes, with what to do', async () => {
    await withStorage(200, async (bus) => {
      await expect(ensureTopology(bus)).rejects.toThrow(
        'NATS has too little JetStream storage for the stream CHANGES, which reserves 256 MiB: ' +
          'raise max_file_store in its config, or give its store_dir a larger disk',
      );
    });
  });
});
