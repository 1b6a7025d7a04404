import { LEDGER, type ServiceName } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { reported } from './counter.fixture.js';
import { Ledger } from './ledger.js';
import type { TrimResult } from '#libs/engine';
import { trimLedger } from './ledger-trim.js';
import { putSnapshot } from './snapshots.fixture.js';
import { Snapshots } from './snapshots.js';
import { ensureTopology } from './topology.js';

const DAY_MS = 24 * 3_600_000;
const SERVICES: readonly ServiceName[] = ['scheduler', 'merger'];

describe('trimming the ledger', () => {
  const nats = natsFixture();
  let bus: Bus;
  let snapshots: Snapshots;
  const trim = (keepMs = 0): Promise<TrimResult> => trimLedger({ bus, keepMs, services: SERVICES, logger: SILENT });
  const put = async (service: ServiceName, ...sequences: readonly number[]): Promise<void> => {
    for (const sequence of sequences) await putSnapshot(snapshots, { service, version: 1 }, { sequence, state: {} });
  };
  const first = async (): Promise<number> => (await new Ledger(bus).bounds()).first;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    snapshots = new Snapshots(bus);
  });
  beforeEach(async () => {
    for await (const { config } of bus.jsm.streams.list()) await bus.jsm.streams.delete(config.name);
    await ensureTopology(bus);
    await new Ledger(bus).append(
      Array.from({ length: 100 }, (_, i) => reported('n1', i + 1)),
      0,
    );
  });
  afterAll(() => bus.close());

  it('goes up to the older snapshot of the service that is furthest behind', async () => {
    await put('scheduler', 40, 60);
    await put('merger', 30, 90);
    expect(await trim()).toEqual({ trimmed: 30, first: 31, blockedBy: [] });
    expect([await first(), await new Ledger(bus).lastSequence()]).toEqual([31, 100]);
    expect(await trim()).toEqual({ trimmed: 0, first: 31, blockedBy: [] });
    await put('merger', 95);
    expect(await trim()).toMatchObject({ first: 41 });
  });

  it('keeps facts that are younger than the retention time', async () => {
    await put('scheduler', 40, 60);
    await put('merger', 30, 90);
    expect(await trim(DAY_MS)).toEqual({ trimmed: 0, first: 1, blockedBy: [] });
  });

  it('does not rely on the age that a snapshot claims', async () => {
    await put('scheduler', 40, 60);
    await put('merger', 30, 90);
    const stored = jest
      .spyOn(bus, 'stored')
      .mockImplementation(async () => ({ time: new Date(Date.now() + DAY_MS) }) as never);
    expect(await trim()).toMatchObject({ first: 1 });
    stored.mockRestore();
    expect(await trim()).toMatchObject({ first: 31 });
  });

  it('waits for a service with fewer than two snapshots, and names it', async () => {
    await put('scheduler', 40, 60);
    expect((await trim()).blockedBy).toEqual([{ service: 'merger', why: 'has no snapshot' }]);
    await put('merger', 50);
    expect((await trim()).blockedBy).toMatchObject([
      { service: 'merger', why: expect.stringContaining('only one snapshot') as unknown },
    ]);
    expect(await first()).toBe(1);
  });

  it('skips an unreadable snapshot', async () => {
    await put('scheduler', 20, 40, 60);
    await put('merger', 50, 90);
    const subject = `$O.snapshots.M.${Buffer.from('scheduler.v1.b').toString('base64')}`;
    const { nuid } = JSON.parse((await bus.stored('OBJ_snapshots', { last_by_subj: subject }))?.string() ?? '{}') as {
      nuid: string;
    };
    await bus.jsm.streams.purge('OBJ_snapshots', { filter: `$O.snapshots.C.${nuid}` });
    await bus.publish(`$O.snapshots.C.${nuid}`, 'no snapshot');
    expect(await trim()).toMatchObject({ first: 21 });
  });

  it('keeps the last fact, so that the ledger is never empty', async () => {
    await put('scheduler', 99, 100);
    await put('merger', 100, 100);
    expect(await trim()).toMatchObject({ first: 100 });
    await put('scheduler', 100);
    expect(await trim()).toMatchObject({ trimmed: 0, first: 100 });
    expect((await bus.jsm.streams.info(LEDGER)).state.messages).toBe(1);
    expect(await new Ledger(bus).append([reported('n1', 101)], 100)).toMatchObject({ outcome: 'appended' });
  });

  it('counts snapshots of an older version as long as the newer release can load them, and removes useless ones', async () => {
    await put('scheduler', 10, 40);
    await put('merger', 80, 90);
    await putSnapshot(snapshots, { service: 'scheduler', version: 2, loads: [2, 1] }, { sequence: 60, state: {} });
    expect(await trim()).toMatchObject({ first: 41 });
    expect((await snapshots.list('scheduler')).map(({ sequence }) => sequence).toSorted()).toEqual([40, 60]);
    await putSnapshot(snapshots, { service: 'scheduler', version: 3, loads: [3] }, { sequence: 70, state: {} });
    expect((await trim()).blockedBy).toMatchObject([{ service: 'scheduler' }]);
  });

  it('is harmless if a copy that paused repeats it with old knowledge', async () => {
    await put('scheduler', 40, 60);
    await put('merger', 50, 90);
    const { purge } = bus.jsm.streams;
    let late: (() => Promise<unknown>) | undefined;
    const held = jest.spyOn(bus.jsm.streams, 'purge').mockImplementation((name, options) => {
      late = () => purge.call(bus.jsm.streams, name, options);
      return Promise.resolve({ success: true, purged: 0 });
    });
    await trim();
    held.mockRestore();
    await put('scheduler', 95, 98);
    await put('merger', 96, 99);
    expect(await trim()).toMatchObject({ first: 96 });
    await late?.();
    expect(await first()).toBe(96);
  });
});
