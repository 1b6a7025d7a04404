import { nanos } from '@nats-io/nats-core';
import { isAtLeast, SILENT } from '#libs/process';
import { natsFixture } from '#libs/testing';
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

  it('are made by the first to come, five at once included', async () => {
    const starters = await Promise.all([1, 2, 3, 4, 5].map(connected));
    await Promise.all(starters.map((bus) => ensureTopology(bus)));
    expect(await compareTopology(buses[0] as Bus)).toEqual([]);
  });

  it('are named when they are missing', async () => {
    expect(await compareTopology(buses[0] as Bus)).toContain('LEDGER is missing');
  });

  it('are put right where that can be done', async () => {
    const bus = buses[0] as Bus;
    await ensureTopology(bus);
    await bus.jsm.streams.update('REPORTS', { max_age: nanos(60_000), duplicate_window: nanos(30_000) });
    expect(await compareTopology(bus)).toEqual([expect.stringMatching(/^REPORTS: max_age is 60000000000/)]);
    await ensureTopology(bus);
    expect(await compareTopology(bus)).toEqual([]);
  });

  it('are an error where that cannot be done, and it names the difference', async () => {
    const bus = buses[0] as Bus;
    await bus.jsm.streams.add({ name: 'CHANGES', subjects: ['config.desired.>'], storage: 'memory' });
    const error = await ensureTopology(bus).then(
      () => undefined,
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(TopologyError);
    expect((error as Error).message).toMatch(/CHANGES: storage is "memory", but should be "file"/);
  });

  it('need a server of 2.12', () => {
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
