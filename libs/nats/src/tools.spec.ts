import { createHash } from 'node:crypto';
import { encodeView, type LeaseView, type NodeReport, type StatusView, type Targets } from '#libs/contracts';
import { natsFixture, until } from '#libs/testing';
import { Blobs } from './blobs.js';
import { connectBus, type Bus } from './connection.js';
import { connectFleet, connectNodeBus, type FleetClient, type NodeBus } from '#libs/client';
import { ensureTopology, kvSubject } from './topology.js';

const lease: LeaseView = {
  ledger: 1,
  node: 'w-1.dc1',
  pool: 'edge',
  lease: 'l1',
  change: 'c1',
  kind: 'forward',
  phase: 'applying',
  hash: 'h',
  from: '',
  actions: [],
  applyMs: 1,
  drainMs: 1,
  because: '',
  reason: '',
  grantedAt: '',
  settledAt: '',
};
const report: NodeReport = {
  kind: 'applied',
  v: 1,
  at: '',
  node: 'w-1.dc1',
  incarnation: 1,
  nonce: 1,
  seq: 1,
  bootId: '',
  hash: '',
  lease: 'l1',
  verdict: 'applied',
  reason: '',
  restored: true,
  change: 'c1',
  pool: 'edge',
  labels: {},
  capabilities: [],
  fresh: false,
  version: '',
  durationMs: 0,
  changed: [],
  probe: '',
  differences: [],
  needsRestart: false,
  step: '',
};

describe('what nodes and tools use', () => {
  const nats = natsFixture();
  const node = 'w-1.dc1';
  let bus: Bus;
  let fleet: FleetClient;
  let applier: NodeBus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    fleet = await connectFleet({ servers: [nats.server.url], timeoutMs: 2_000 });
    applier = await connectNodeBus({ servers: nats.server.url, node });
  });
  afterAll(async () => {
    await applier.close();
    await Promise.all([bus.close(), fleet.close()]);
  });

  it('a node reads its own lease, status and config', async () => {
    expect([await applier.lease(), await applier.status(), await applier.config('h')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    await bus.publish(kvSubject('leases', 'w-1_dc1'), encodeView('leases', lease));
    await new Blobs(bus).putConfigs([{ node, hash: 'h', text: '{"fragments":[]}' }]);
    expect(await applier.lease()).toEqual(lease);
    expect(await applier.config('h')).toBe('{"fragments":[]}');
    expect(await fleet.config(node, 'h')).toEqual({ fragments: [] });
  });

  it('a node is told when its lease or status was written, and only its own', async () => {
    const pushed: { readonly lease?: LeaseView; readonly status?: StatusView }[] = [];
    applier.onPush((push) => pushed.push(push));
    const other = await connectNodeBus({ connection: bus, node: 'w-2.dc1' });
    const wrong: unknown[] = [];
    other.onPush((push) => wrong.push(push));
    await bus.publish(kvSubject('leases', 'w-1_dc1'), encodeView('leases', { ...lease, ledger: 2 }));
    await until(() => pushed.length > 0);
    expect(pushed).toEqual([{ lease: { ...lease, ledger: 2 } }]);
    expect(wrong).toEqual([]);
    await other.close();
    expect(bus.connected).toBe(true);
  });

  it('a report repeated is stored again', async () => {
    await applier.report(report);
    await applier.report(report);
    expect((await bus.jsm.streams.info('REPORTS')).state.messages).toBe(2);
  });

  it('ten thousand nodes share a connection', async () => {
    const many = await Promise.all(
      Array.from({ length: 10_000 }, (_, i) => connectNodeBus({ connection: bus, node: `n${i}` })),
    );
    let hints = 0;
    for (const one of many) one.onPush(() => (hints += 1));
    await bus.publish(kvSubject('leases', 'n9999'), encodeView('leases', { ...lease, node: 'n9999' }));
    await until(() => hints === 1);
    await Promise.all(many.map((one) => one.close()));
  });

  it('a change is published once, however often its sender tries', async () => {
    const first = await fleet.publishChange('me', '{"apply": []}', 'me:1');
    expect(first).toEqual({ change: 'c1', duplicate: false });
    expect(await fleet.publishChange('me', '{"apply": []}', 'me:1')).toEqual({ change: 'c1', duplicate: true });
  });

  it('views are listed and watched by name', async () => {
    expect([...(await fleet.list('leases')).keys()].sort()).toEqual(['n9999', node]);
    expect(await fleet.get('leases', node)).toMatchObject({ lease: 'l1' });
    const stop = new AbortController();
    const seen: number[] = [];
    const watching = (async () => {
      for await (const { value } of fleet.watch('leases', node, stop.signal)) seen.push(value.ledger);
    })();
    await until(() => seen.length === 1);
    await bus.publish(kvSubject('leases', 'w-1_dc1'), encodeView('leases', { ...lease, ledger: 3 }));
    await until(() => seen.length === 2);
    stop.abort();
    await watching;
    expect(seen).toEqual([2, 3]);
  });

  it('a watch that is stopped while it opens ends, though its key has no value', async () => {
    const stop = new AbortController();
    const first = fleet.watch('leases', 'n-without', stop.signal)[Symbol.asyncIterator]().next();
    stop.abort();
    expect(await first).toEqual({ done: true, value: undefined });
  });

  it('events of all streams come in the order of time, to the end or on and on', async () => {
    await bus.publish('node.heard.n1', JSON.stringify({ v: 1, at: '', node: 'n1' }));
    await fleet.publishChange('me', 'not json');
    const signal = new AbortController().signal;
    const stored: string[] = [];
    for await (const { stream, sequence } of fleet.events({ follow: false, signal }))
      stored.push(`${stream} ${sequence}`);
    expect(stored).toEqual(['REPORTS 1', 'REPORTS 2', 'CHANGES 1', 'LEDGER 1', 'CHANGES 2']);
    const only: unknown[] = [];
    for await (const { body } of fleet.events({ follow: false, signal, subject: 'config.desired.>' })) only.push(body);
    expect(only).toEqual([{ apply: [] }, 'not json']);
    const none: unknown[] = [];
    for await (const event of fleet.events({ follow: false, signal, since: new Date(Date.now() + 60_000) }))
      none.push(event);
    expect(none).toEqual([]);
    const stop = new AbortController();
    const followed: string[] = [];
    const following = (async () => {
      for await (const { subject } of fleet.events({ follow: true, signal: stop.signal, subject: 'node.heard.*' }))
        followed.push(subject);
    })();
    await until(() => followed.length === 1);
    await bus.publish('node.heard.n2', JSON.stringify({ v: 1, at: '', node: 'n2' }));
    await until(() => followed.length === 2);
    stop.abort();
    await following;
  });

  it('a config that is not the one with its hash is not read, and stands in for no other node', async () => {
    const text = '{"fragments":[]}';
    const hash = createHash('sha256').update(text).digest('hex');
    const blobs = new Blobs(bus);
    const forged = '{"fragments":[{"kind":"File","name":"f","spec":{}}]}';
    await blobs.putConfigs([
      { node: 'w-1', hash, text: forged },
      { node: 'w-2', hash, text },
    ]);
    const [first, second] = [
      await blobs.configs([{ node: 'w-1', hash }]),
      await blobs.configs([{ node: 'w-2', hash }]),
    ];
    expect([first, second]).toEqual([[undefined], [{ fragments: [] }]]);
  });

  it('targets come back as they were kept, in pieces that a message can hold', async () => {
    const blobs = new Blobs(bus);
    const targets: Targets = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, i) => [
        `n${i}`,
        { from: 'a'.repeat(64), to: 'b'.repeat(64), recipe: 'c'.repeat(64) },
      ]),
    );
    const keys = await blobs.putTargets('c7', targets);
    expect(keys.length).toBe(3);
    expect(await blobs.putTargets('c7', targets)).toEqual(keys);
    expect(await blobs.targets(keys)).toEqual(targets);
    await expect(blobs.targets(['c7.missing'])).rejects.toThrow(/there is no "c7.missing"/);
  });

  it('what is wrong with an installation can be seen', async () => {
    await bus.publish(kvSubject('pools', 'edge'), '{"ledger": 99}');
    expect(await fleet.inspect()).toMatchObject({
      server: { jetstream: true },
      topology: [],
      services: [],
      viewsAhead: expect.arrayContaining(['pools']),
      poison: [],
    });
  });

  it('without a server or a service the error says where nobody was', async () => {
    await expect(connectFleet({ servers: 'nats://127.0.0.1:1' })).rejects.toMatchObject({
      name: 'NoConnectionError',
      message: expect.stringContaining('127.0.0.1:1'),
    });
    await expect(fleet.request('ops.pool.list', {})).rejects.toMatchObject({
      name: 'NoConnectionError',
      message: expect.stringContaining('ops.pool.list'),
    });
  });
});
