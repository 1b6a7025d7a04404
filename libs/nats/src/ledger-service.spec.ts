import { Socket } from 'node:net';
import { LEDGER, REPORTS, type StatusView } from '#libs/contracts';
import { natsFixture, until } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { counterCore, reported, type CounterInput, type Counts } from './counter.fixture.js';
import { Ledger } from './ledger.js';
import { LedgerService } from './ledger-service.js';
import { newestSnapshot } from './snapshots.fixture.js';
import { Snapshots } from './snapshots.js';
import { ensureTopology, kvStream, kvSubject } from './topology.js';
import { listViews, newestViews } from './views.js';

type Counter = LedgerService<Counts, CounterInput, never, never>;
const LEADER_TTL_MS = 1_500;

describe('a service on the ledger', () => {
  const nats = natsFixture();
  const buses: Bus[] = [];
  const counters: Counter[] = [];

  const connected = async (): Promise<Bus> => {
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    buses.push(bus);
    return bus;
  };
  const started = async (snapshotFacts = 1_000): Promise<Counter> => {
    const counter = new LedgerService(
      { core: counterCore },
      { bus: await connected(), leaderTtlMs: LEADER_TTL_MS, snapshotFacts },
    );
    counters.push(counter);
    await counter.start();
    return counter;
  };
  const status = async (bus: Bus, node: string): Promise<StatusView | undefined> => {
    const message = await bus.jsm.streams.getMessage(kvStream('status'), { last_by_subj: kvSubject('status', node) });
    return message?.json<StatusView>();
  };
  const report = (node: string, sequence: number): CounterInput => ({ kind: 'report', node, sequence });

  beforeEach(async () => {
    const bus = await connected();
    for await (const { config } of bus.jsm.streams.list()) await bus.jsm.streams.delete(config.name);
    await ensureTopology(bus, { leaderTtlMs: LEADER_TTL_MS });
  });
  afterEach(async () => {
    await Promise.all(counters.splice(0).map((counter) => counter.stop()));
    await Promise.all(buses.splice(0).map((bus) => bus.close()));
  });

  it('appends its decision, writes its views, and then settles the input', async () => {
    const counter = await started();
    await until(() => counter.leading);
    await counter.submitAll([report('n1', 1), report('n1', 2), report('n2', 3)]);
    const bus = buses[0] as Bus;
    expect(await status(bus, 'n1')).toMatchObject({ ledger: 3, node: 'n1', seq: 2 });
    expect(await new Ledger(bus).lastSequence()).toBe(3);
  });

  it('sends the views of one decision together', async () => {
    const counter = await started();
    await until(() => counter.leading);
    const write = jest.spyOn(Socket.prototype, 'write');
    await counter.submitAll(Array.from({ length: 200 }, (_, i) => report(`n${i}`, i + 1)));
    const sent = write.mock.calls.map(([data]) => Buffer.from(data as Uint8Array).toString());
    write.mockRestore();
    const ofViews = sent.filter((text) => text.includes('$KV.status.'));
    expect(ofViews.join('').match(/\$KV\.status\.n\d+ /g)).toHaveLength(200);
    expect(ofViews.length).toBeLessThan(20);
  });

  it('reports why its decisions fail again and again, and recovers when they succeed', async () => {
    let fails = true;
    const core = {
      ...counterCore,
      decide: (...args: Parameters<typeof counterCore.decide>) => {
        if (fails) throw new TypeError('matchExpressions is not iterable');
        return counterCore.decide(...args);
      },
    };
    const counter: Counter = new LedgerService({ core }, { bus: await connected(), leaderTtlMs: LEADER_TTL_MS });
    counters.push(counter);
    const reasons: (string | undefined)[] = [];
    counter.onLeadershipChange(() => reasons.push(counter.stuck));
    await counter.start();
    expect(await until(() => counter.stuck)).toMatch(/keep failing \(matchExpressions is not iterable\)/);
    expect([counter.halted, counter.unready]).toEqual([undefined, undefined]);
    fails = false;
    await until(() => counter.stuck === undefined || undefined);
    expect([reasons.some((one) => one !== undefined), reasons.at(-1)]).toEqual([true, undefined]);
    await counter.submit(report('n1', 1));
  });

  it('changes nothing when an input is repeated', async () => {
    const counter = await started();
    await until(() => counter.leading);
    await counter.submit(report('n1', 1));
    await counter.submit(report('n1', 1));
    expect(await counter.query((state) => state.byNode.get('n1')?.count)).toBe(1);
  });

  it('answers with the decision, or with a refusal', async () => {
    const counter = await started();
    await until(() => counter.leading);
    expect(await counter.submit({ kind: 'skip', node: 'n1', by: 'me' })).toMatchObject({
      ok: false,
      code: 'not-found',
    });
    await counter.submit(report('n1', 1));
    expect(await counter.submit({ kind: 'skip', node: 'n1', by: 'me' })).toEqual({
      ok: true,
      body: { node: 'n1', skipped: true },
    });
  });

  it('is refused if another copy has appended, folds that, and decides again', async () => {
    const counter = await started();
    await until(() => counter.leading);
    const other = new Ledger(buses[0] as Bus);
    for (let sequence = 1; sequence <= 60; sequence += 2) {
      const intruding = async (): Promise<void> => {
        for (let outcome = ''; outcome !== 'appended';)
          outcome = (await other.append([reported('n2', sequence + 1)], await other.lastSequence())).outcome;
      };
      await Promise.all([
        counter.submit({ kind: 'skip', node: 'n2', by: 'x' }),
        intruding(),
        counter.submit({ kind: 'skip', node: 'n2', by: 'y' }),
      ]);
    }
    expect(await counter.query((state) => state.byNode.get('n2')?.count)).toBe(30);
  });

  it('answers a query and writes snapshots while inputs keep arriving', async () => {
    const counter = await started(500);
    await until(() => counter.leading);
    let settled = false;
    const all = counter
      .submitAll(Array.from({ length: 5_000 }, (_, i) => report('n1', i + 1)))
      .then(() => (settled = true));
    expect(await counter.query((state) => state.byNode.has('n2'))).toBe(false);
    expect(settled).toBe(false);
    await all;
    await until(async () => (await newestSnapshot(new Snapshots(buses[0] as Bus), 'scheduler')) !== undefined);
  });

  it('is taken over by another copy when the leader ends, which continues from its decisions', async () => {
    const first = await started();
    await until(() => first.leading);
    const second = await started();
    await first.submitAll([report('n1', 1), report('n1', 2)]);
    expect(second.leading).toBe(false);
    await first.stop();
    await until(() => second.leading);
    expect(second.cursor).toBe(2);
    await second.submitAll([report('n1', 2), report('n1', 3)]);
    expect(await second.query((state) => state.byNode.get('n1')?.count)).toBe(3);
  });

  it('is taken over by another copy when the leader is cut off, and pending inputs are returned', async () => {
    const first = await started();
    await until(() => first.leading);
    const second = await started();
    await (buses.at(-2) as Bus).nc.close();
    await until(() => second.leading);
    await expect(first.submit(report('n1', 1))).rejects.toThrow(
      /is not the leader|another copy of this service leads now/,
    );
  });

  it('starts from its snapshot', async () => {
    const first = await started();
    await until(() => first.leading);
    await first.submitAll([report('n1', 1), report('n1', 2)]);
    await first.stop();
    expect(await newestSnapshot(new Snapshots(buses[0] as Bus), 'scheduler')).toMatchObject({ sequence: 2 });
    // What is before the snapshot may be trimmed.
    await (buses[0] as Bus).jsm.streams.purge(LEDGER, { seq: 3 });
    const second = await started();
    await until(() => second.leading);
    expect(await second.query((state) => state.byNode.get('n1')?.count)).toBe(2);
  });

  it('halts if its input ends before its cursor, and continues when that is fixed', async () => {
    const bus = buses[0] as Bus;
    await new Ledger(bus).append([reported('n1', 7)], 0);
    const counter = new LedgerService(
      { core: counterCore, input: REPORTS },
      { bus: await connected(), leaderTtlMs: LEADER_TTL_MS },
    );
    counters.push(counter);
    await counter.start();
    expect(await until(() => counter.halted)).toMatch(
      /REPORTS ends at sequence 0, but was already read up to 7: .*"first_seq": 8/,
    );
    expect(counter.leading).toBe(false);
    const { config } = await bus.jsm.streams.info(REPORTS);
    await bus.jsm.streams.delete(REPORTS);
    await bus.jsm.streams.add({ ...config, first_seq: 8 });
    await until(() => counter.leading);
    expect(counter.halted).toBeUndefined();
  });

  it('halts if the ledger was trimmed and no snapshot covers that, and says what to do', async () => {
    const bus = buses[0] as Bus;
    await new Ledger(bus).append([reported('n1', 1), reported('n1', 2), reported('n1', 3)], 0);
    await bus.jsm.streams.purge(LEDGER, { seq: 3 });
    const counter = await started();
    expect(await until(() => counter.halted)).toMatch(
      /starts at sequence 3: earlier facts were trimmed.* other releases do not exist either: restore the stream OBJ_snapshots/,
    );
  });

  it('of a new version starts from an older snapshot with migrations, and otherwise halts and names the release', async () => {
    const first = await started();
    await until(() => first.leading);
    await first.submitAll([report('n1', 1), report('n1', 2)]);
    await first.stop();
    const bus = buses[0] as Bus;
    await bus.jsm.streams.purge(LEDGER, { seq: 3 });
    const ofVersion2 = async (migrations: typeof counterCore.migrations): Promise<Counter> => {
      const core = { ...counterCore, version: 2, ...(migrations === undefined ? {} : { migrations }) };
      const counter = new LedgerService({ core }, { bus: await connected(), leaderTtlMs: LEADER_TTL_MS });
      counters.push(counter);
      await counter.start();
      return counter;
    };
    await bus.js.publish('node.heard.n1', '{}');
    const without = await ofVersion2(undefined);
    expect(await until(() => without.halted)).toMatch(
      /starts at sequence 3.*have fold version 1, but this release has version 2 and reads 2: start the previous release, or one that can read them/,
    );
    const second = await ofVersion2({
      1: (dumped) => ({ ...(dumped as object), byNode: [['n1', { count: 20, skipped: '' }]] }),
    });
    await until(() => second.leading);
    await second.submit(report('n1', 3));
    expect(await second.query((state) => state.byNode.get('n1')?.count)).toBe(21);
    await second.stop();
    expect(await newestSnapshot(new Snapshots(bus), 'scheduler')).toMatchObject({
      sequence: 4,
      version: 2,
      loads: [2, 1],
    });
    // From the second snapshot, of its own version.
    await until(() => without.leading);
    expect([without.halted, await without.query((state) => state.byNode.get('n1')?.count)]).toEqual([undefined, 21]);
  });

  it('folds again from a snapshot if the ledger is trimmed before it has read it', async () => {
    const first = await started();
    await until(() => first.leading);
    await first.submitAll([report('n1', 1), report('n1', 2)]);
    await first.stop();
    const bus = buses[0] as Bus;
    // It checks before there is anything, and reads when that is already trimmed, like a copy that paused in between.
    const copy = new LedgerService({ core: counterCore }, { bus: await connected(), leaderTtlMs: LEADER_TTL_MS });
    counters.push(copy);
    jest.spyOn(Ledger.prototype, 'bounds').mockResolvedValueOnce({ first: 1, last: 0 });
    await bus.jsm.streams.purge(LEDGER, { seq: 2 });
    await copy.start();
    await until(() => copy.leading);
    expect(await copy.query((state) => state.byNode.get('n1')?.count)).toBe(2);
  });

  it('writes a snapshot after a while even if there are few facts', async () => {
    const counter = new LedgerService(
      { core: counterCore },
      { bus: await connected(), leaderTtlMs: LEADER_TTL_MS, snapshotMs: 50 },
    );
    counters.push(counter);
    await counter.start();
    await until(() => counter.leading);
    await counter.submit(report('n1', 1));
    await until(async () => (await newestSnapshot(new Snapshots(buses[0] as Bus), 'scheduler'))?.sequence === 1);
  });

  it('keeps a void fact if every snapshot includes it and the ledger before it was trimmed', async () => {
    const first = await started();
    await until(() => first.leading);
    await first.submitAll([report('n1', 1), report('n1', 2), report('n1', 3)]);
    await first.stop();
    const bus = buses[0] as Bus;
    await bus.jsm.streams.purge(LEDGER, { seq: 3 });
    const second = await started();
    await until(() => second.leading);
    await bus.js.publish('ledger.voided.1', JSON.stringify({ v: 1, at: '', sequence: 1, by: 'me', reason: '' }));
    await bus.js.publish('node.reported.n1', JSON.stringify({ ...reported('n1', 4), at: '', v: 1 }));
    await until(async () => (await status(bus, 'n1'))?.seq === 4);
    expect(second.halted).toBeUndefined();
  });

  it('leaves a void fact out if an older snapshot does not include it, even if the ledger was trimmed', async () => {
    const first = await started(1);
    await until(() => first.leading);
    for (const sequence of [1, 2, 3]) {
      await first.submit(report('n1', sequence));
      await until(
        async () => (await newestSnapshot(new Snapshots(buses[0] as Bus), 'scheduler'))?.sequence === sequence,
      );
    }
    const bus = buses[0] as Bus;
    await bus.jsm.streams.purge(LEDGER, { seq: 2 });
    await bus.js.publish('ledger.voided.2', JSON.stringify({ v: 1, at: '', sequence: 2, by: 'me', reason: '' }));
    await until(async () => (await status(bus, 'n1'))?.seq === 2);
    expect(first.halted).toBeUndefined();
  });

  it('does not start from a snapshot of a ledger that was replaced', async () => {
    const first = await started();
    await until(() => first.leading);
    await first.submitAll([report('n1', 1), report('n1', 2)]);
    await first.stop();
    const bus = buses[0] as Bus;
    const { config } = await bus.jsm.streams.info(LEDGER);
    await bus.jsm.streams.delete(LEDGER);
    await bus.jsm.streams.add(config);
    await new Ledger(bus).append([reported('n2', 1), reported('n2', 2), reported('n2', 3)], 0);
    const second = await started();
    await until(() => second.leading);
    expect(await second.query((state) => [...state.byNode].map(([node, { count }]) => `${node} ${count}`))).toEqual([
      'n2 3',
    ]);
  });

  it('writes snapshots while it runs', async () => {
    const counter = await started(10);
    await until(() => counter.leading);
    await counter.submitAll(Array.from({ length: 25 }, (_, i) => report('n1', i + 1)));
    await until(async () => ((await newestSnapshot(new Snapshots(buses[0] as Bus), 'scheduler'))?.sequence ?? 0) >= 10);
  });

  it('halts at a fact that it cannot decode, and continues when a person declares it void', async () => {
    const counter = await started();
    await until(() => counter.leading);
    await counter.submit(report('n1', 1));
    const bus = buses[0] as Bus;
    await bus.js.publish('node.reported.n1', JSON.stringify({ ...reported('n1', 2), at: '', v: 99 }));
    expect(await until(() => counter.halted)).toMatch(/sequence 2 .*version 99/);
    expect(counter.unready).toMatch(/^it has stopped deciding: sequence 2 /);
    await until(() => !counter.leading);
    await expect(counter.submit(report('n1', 2))).rejects.toThrow(/has stopped deciding: sequence 2/);
    await bus.js.publish('ledger.voided.2', JSON.stringify({ v: 1, at: '', sequence: 2, by: 'me', reason: '' }));
    await until(() => counter.leading);
    await counter.submit(report('n1', 2));
    expect(await counter.query((state) => state.byNode.get('n1')?.count)).toBe(2);
  });

  it('halts if its own fold fails, and folds again when a person declares the fact void', async () => {
    const bus = buses[0] as Bus;
    await new Ledger(bus).append([reported('n1', 1), reported('breaks-the-fold', 2), reported('n1', 3)], 0);
    const counter = await started();
    expect(await until(() => counter.halted)).toMatch(/sequence 2/);
    await bus.js.publish('ledger.voided.2', JSON.stringify({ v: 1, at: '', sequence: 2, by: 'me', reason: '' }));
    await until(() => counter.leading);
    expect(await counter.query((state) => state.byNode.get('n1')?.count)).toBe(2);
  });

  it('no longer folds a fact that was declared void after it was folded', async () => {
    const counter = await started();
    await until(() => counter.leading);
    await counter.submitAll([report('n1', 1), report('n1', 2)]);
    await (buses[0] as Bus).js.publish(
      'ledger.voided.1',
      JSON.stringify({ v: 1, at: '', sequence: 1, by: 'me', reason: '' }),
    );
    await until(async () => (await status(buses[0] as Bus, 'n1'))?.seq === 1);
  });

  it('counts facts that the core does not read as folded', async () => {
    const counter = await started();
    await until(() => counter.leading);
    await new Ledger(buses[0] as Bus).append(
      [
        { type: 'node.heard', node: 'n1' },
        { type: 'node.heard', node: 'n2' },
      ],
      0,
    );
    await counter.submit(report('n1', 1));
    expect(await new Ledger(buses[0] as Bus).lastSequence()).toBe(3);
  });

  it('appends nothing to a ledger that ends before its views', async () => {
    const bus = buses[0] as Bus;
    await bus.js.publish(kvSubject('pools', 'edge'), JSON.stringify({ ledger: 7, pool: 'edge' }));
    const counter = await started();
    expect(await until(() => counter.halted)).toMatch(/pools shows 7, but the ledger ends at 0|pools.edge shows 7/);
    expect(counter.leading).toBe(false);
    await bus.js.publish(kvSubject('pools', 'edge'), JSON.stringify({ ledger: 0, pool: 'edge' }));
    await until(() => counter.leading);
  });

  it('corrects a wrong view when it begins to lead, and does not rewrite a correct one', async () => {
    const bus = buses[0] as Bus;
    await new Ledger(bus).append([reported('n1', 1), reported('n2', 2)], 0);
    const first = await started();
    await until(() => first.leading);
    await first.stop();
    await bus.js.publish(kvSubject('status', 'n1'), '{"ledger":1,"node":"n1","seq":99}');
    const { last_seq: before } = (await bus.jsm.streams.info(kvStream('status'))).state;
    const second = await started();
    await until(() => second.leading);
    expect(await status(bus, 'n1')).toMatchObject({ seq: 1 });
    expect((await bus.jsm.streams.info(kvStream('status'))).state.last_seq).toBe(before + 1);
  });

  describe('that forgets nodes', () => {
    const isKnown = (state: Counts, node: string): boolean => state.byNode.get(node)?.skipped === '';
    const forgetful: typeof counterCore = {
      ...counterCore,
      forgets: ['status'],
      viewKeys: (state) =>
        [...state.byNode.keys()].filter((node) => isKnown(state, node)).map((node) => `status/${node}`),
      view: (state, key) => (isKnown(state, key.key) ? counterCore.view(state, key) : undefined),
    };
    const startForgetful = async (): Promise<Counter> => {
      const counter: Counter = new LedgerService(
        { core: forgetful },
        { bus: await connected(), leaderTtlMs: LEADER_TTL_MS },
      );
      counters.push(counter);
      await counter.start();
      await until(() => counter.leading);
      return counter;
    };
    const shown = async () => [...(await listViews(buses[0] as Bus, 'status')).keys()];

    it('deletes their views, and leaves a mark that expires', async () => {
      const counter = await startForgetful();
      await counter.submitAll([report('n1', 1), report('n2.dc', 2)]);
      await counter.submit({ kind: 'skip', node: 'n1', by: 'me' });
      expect(await shown()).toEqual(['n2.dc']);
      const bus = buses[0] as Bus;
      const last = { last_by_subj: kvSubject('status', 'n1') };
      const mark = await bus.jsm.streams.getMessage(kvStream('status'), last);
      expect([mark?.header.get('KV-Operation'), mark?.header.get('Nats-TTL')]).toEqual(['DEL', '1h']);
      expect((await newestViews(bus)).get('status')).toBe(3);
    });

    it('deletes what an earlier leader could not delete before it takes inputs', async () => {
      const first = await started();
      await until(() => first.leading);
      await first.submitAll([report('n1.dc', 1), report('n2', 2)]);
      await first.submit({ kind: 'skip', node: 'n1.dc', by: 'me' });
      await first.stop();
      expect(await shown()).toEqual(['n2', 'n1.dc']);
      await startForgetful();
      expect(await shown()).toEqual(['n2']);
    });
  });

  it('returns the pending inputs if the core throws, and continues to run', async () => {
    const counter = await started();
    await until(() => counter.leading);
    await expect(counter.submit(report('breaks-the-core', 1))).rejects.toThrow('a bug');
    await counter.submit(report('n1', 1));
    expect(await counter.query((state) => state.byNode.get('n1')?.count)).toBe(1);
  });
});
