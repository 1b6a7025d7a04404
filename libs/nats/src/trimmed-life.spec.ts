import type { ServiceName } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture, until } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { counterCore, type CounterInput, type Counts } from './counter.fixture.js';
import { LedgerService } from './ledger-service.js';
import { Ledger } from './ledger.js';
import { trimLedger } from './ledger-trim.js';
import { ensureTopology } from './topology.js';

type Counter = LedgerService<Counts, CounterInput, never, never>;
const LEADER_TTL_MS = 1_500;
const SERVICES: readonly ServiceName[] = ['scheduler'];
const ROUNDS = 12;
const REPORTS = 40;

/**
 * Copies are cut off during their work and others take over, while everything before their snapshots is trimmed all the
 * time.
 */
describe('a ledger that is trimmed continuously', () => {
  const nats = natsFixture();

  it('loses no counts, no matter which copy is cut off', async () => {
    const own = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(own, { leaderTtlMs: LEADER_TTL_MS });
    const running = new Map<Counter, Bus>();
    const cutOff: Counter[] = [];
    const start = async (): Promise<void> => {
      const bus = await connectBus({ servers: nats.server.url, name: 'copy' });
      const counter: Counter = new LedgerService(
        { core: counterCore },
        { bus, leaderTtlMs: LEADER_TTL_MS, snapshotFacts: 15 },
      );
      running.set(counter, bus);
      await counter.start();
    };
    const leader = (): Promise<Counter> =>
      until(() => [...running.keys()].find((counter) => counter.leading), 'a copy leads');
    let isOver = false;
    const trimming = (async () => {
      for (; !isOver; await new Promise((resolve) => setImmediate(resolve)))
        await trimLedger({ bus: own, keepMs: 0, services: SERVICES, logger: SILENT });
    })();
    await Promise.all([start(), start()]);
    for (let round = 0; round < ROUNDS; round += 1) {
      const counting = await leader();
      const sent = Array.from({ length: REPORTS }, (_, i): CounterInput => ({
        kind: 'report',
        node: 'n1',
        sequence: round * REPORTS + i + 1,
      }));
      const all = counting.submitAll(sent).catch(() => undefined);
      if (round % 3 !== 0) await all;
      const bus = running.get(counting) as Bus;
      running.delete(counting);
      if (round % 2 === 0) await bus.nc.close().then(() => cutOff.push(counting));
      else await counting.stop().then(() => bus.close());
      await start();
      // Like inputs: repeated until they are known to be processed.
      await until(async () =>
        (await leader()).submitAll(sent).then(
          () => true,
          () => false,
        ),
      );
    }
    isOver = true;
    await trimming;
    // The last look may have begun before the last snapshots.
    await trimLedger({ bus: own, keepMs: 0, services: SERVICES, logger: SILENT });
    expect(
      await (await leader()).query((state) => ({ count: state.byNode.get('n1')?.count, cursor: state.cursor })),
    ).toEqual({ count: ROUNDS * REPORTS, cursor: ROUNDS * REPORTS });
    expect((await new Ledger(own).bounds()).first).toBeGreaterThan((ROUNDS - 3) * REPORTS);
    expect([...running.keys()].map(({ halted }) => halted)).toEqual([undefined, undefined]);
    await Promise.all([...running].map(([counter, bus]) => counter.stop().then(() => bus.close())));
    await Promise.all(cutOff.map((counter) => counter.stop()));
    await own.close();
  });
});
