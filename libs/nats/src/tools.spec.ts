import { createHash } from 'node:crypto';
import { headers as natsHeaders, nanos } from '@nats-io/nats-core';
import {
  EMPTY_HASH,
  encodeView,
  type LeaseView,
  type NodeReport,
  type StatusView,
  type Targets,
} from '#libs/contracts';
import { natsFixture, until } from '#libs/testing';
import { Blobs } from './blobs.js';
import { connectBus, type Bus } from './connection.js';
import { connectFleet, connectNodeBus, type FleetClient, type NodeBus } from '#libs/client';
import { ensureTopology, kvSubject } from './topology.js';
import { watchViews } from './views.js';

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
  failingProbes: [],
  notUndone: [],
  leftovers: [],
  needsRestart: false,
  step: '',
};

/** No request here has to wait for that long: a busy machine may. */
const LONGEST_MS = 60_000;

describe('the bus for nodes and tools', () => {
  const nats = natsFixture();
  const node = 'w-1.dc1';
  let bus: Bus;
  let fleet: FleetClient;
  let applier: NodeBus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    fleet = await connectFleet({ servers: [nats.server.url], timeoutMs: LONGEST_MS });
    applier = await connectNodeBus({ servers: nats.server.url, node });
  });
  afterAll(async () => {
    await applier.close();
    await Promise.all([bus.close(), fleet.close()]);
  });

  it('a node reads its own lease, status and config', async () => {
    expect([await applier.lease(), await applier.status(), await applier.config(EMPTY_HASH)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    await bus.publish(kvSubject('leases', 'w-1_dc1'), encodeView('leases', lease));
    await new Blobs(bus).putConfigs([{ node, hash: EMPTY_HASH, text: '{"fragments":[]}' }]);
    expect(await applier.lease()).toEqual(lease);
    expect(await applier.config(EMPTY_HASH)).toBe('{"fragments":[]}');
    expect(await fleet.config(node, EMPTY_HASH)).toEqual({ fragments: [] });
    await new Blobs(bus).putConfigs([{ node, hash: 'f'.repeat(64), text: '{"fragments":[]}' }]);
    await expect(fleet.config(node, 'f'.repeat(64))).rejects.toThrow('somebody has changed it');
  });

  it('a node receives a push when its own lease or status was written, and no other', async () => {
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

  it('a node ignores pushes about another node, and those that it cannot read', async () => {
    const pushed: unknown[] = [];
    applier.onPush((push) => pushed.push(push));
    const about = (node: string, ledger: number): string => encodeView('leases', { ...lease, node, ledger });
    const texts = [about('w-2.dc1', 7), '{"stream":"REPORTS","seq":1}', 'no JSON', '', about('w-1.dc1', 8)];
    for (const text of texts) bus.nc.publish('push.leases.w-1_dc1', text);
    await until(() => pushed.length > 0);
    expect(pushed).toEqual([{ lease: { ...lease, ledger: 8 } }]);
  });

  it('a node is asked what exists at paths; a request that cannot be read is refused', async () => {
    const other = await connectNodeBus({ connection: bus, node: 'w-3.dc1' });
    const answer = {
      found: [{ path: '/a', state: 'file', what: 'a file of 3 bytes', refused: '' }],
      busy: false,
    } as const;
    other.onPush(({ query }) => query?.request.paths[0] === '/a' && query.answer(answer));
    await bus.nc.flush();
    expect(await fleet.look('w-3.dc1', { paths: ['/a', '/b'], entries: [] }, LONGEST_MS)).toEqual(answer);
    const tooMany = Array.from({ length: 101 }, () => '/a');
    expect((await bus.request('push.paths.w-3_dc1', JSON.stringify({ paths: tooMany }))).json()).toEqual({
      error: { code: 'bad-request', message: 'a request for 101 paths, but at most 100 are allowed' },
    });
    expect(await fleet.look('w-3.dc1', { paths: tooMany, entries: [] }, LONGEST_MS)).toBeUndefined();
    expect(await fleet.look('nobody', { paths: ['/a'], entries: [] }, LONGEST_MS)).toBeUndefined();
    await other.close();
  });

  it('a repeated report is stored again', async () => {
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

  it('the server stores a change again when it is published again: the merger compares the ids', async () => {
    expect(await fleet.publishChange('me', '{"apply": []}', 'build-42')).toBe('c1');
    expect(await fleet.publishChange('me', '{"apply": []}', 'build-42')).toBe('c2');
    for (const seq of [1, 2]) expect((await bus.stored('CHANGES', { seq }))?.header.get('Sluice-Id')).toBe('build-42');
  });

  it('a message id of the server does not swallow the change of another source', async () => {
    const { config } = await bus.streamInfo('CHANGES');
    expect(config.duplicate_window).toBe(nanos(100));
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

  it('a watch gets the keys that are deleted, as they are known', async () => {
    const stop = new AbortController();
    const deleted: string[] = [];
    const watching = (async () => {
      for await (const _ of watchViews(bus, 'drains', '>', stop.signal, (key) => void deleted.push(key)));
    })();
    const headers = natsHeaders();
    headers.set('KV-Operation', 'DEL');
    await bus.publish(kvSubject('drains', 'w-1_dc1'), '', { headers });
    await until(() => deleted.length > 0);
    stop.abort();
    await watching;
    expect(deleted).toEqual(['w-1.dc1']);
  });

  it('a watch that is stopped while it opens ends, even if its key has no value', async () => {
    const stop = new AbortController();
    const first = fleet.watch('leases', 'n-without', stop.signal)[Symbol.asyncIterator]().next();
    stop.abort();
    expect(await first).toEqual({ done: true, value: undefined });
  });

  it('events of all streams arrive in the order of time, up to the last one or continuously', async () => {
    await bus.publish('node.heard.n1', JSON.stringify({ v: 1, at: '', node: 'n1' }));
    await fleet.publishChange('me', 'not json');
    const signal = new AbortController().signal;
    const stored: string[] = [];
    for await (const { stream, sequence } of fleet.events({ follow: false, signal }))
      stored.push(`${stream} ${sequence}`);
    expect(stored).toEqual(['REPORTS 1', 'REPORTS 2', 'CHANGES 1', 'CHANGES 2', 'LEDGER 1', 'CHANGES 3']);
    const only: unknown[] = [];
    for await (const { body } of fleet.events({ follow: false, signal, subject: 'config.desired.>' })) only.push(body);
    expect(only).toEqual([{ apply: [] }, { apply: [] }, 'not json']);
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

  it('a config that does not match its hash is not used for any node', async () => {
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

  it('targets are read back unchanged, in pieces that fit into a message', async () => {
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

  it('an inspection shows what is wrong with an installation', async () => {
    await bus.publish(kvSubject('pools', 'edge'), '{"ledger": 99}');
    expect(await fleet.inspect()).toMatchObject({
      server: { lacksJetStream: undefined },
      topology: [],
      services: [],
      viewsAhead: expect.arrayContaining(['pools']),
      poison: [],
    });
  });

  it('the changes that nobody has read are those after the last one that has a view', async () => {
    const published: string[] = [];
    for (const text of ['1', '2', '3']) published.push(await fleet.publishChange('ci', text));
    expect((await fleet.unreadChanges()).slice(-3)).toEqual(published);
    await bus.publish(kvSubject('changes', published[1] as string), '{"ledger": 1}');
    expect(await fleet.unreadChanges()).toEqual(published.slice(2));
    expect(await fleet.inspect()).toMatchObject({ unread: published.slice(2) });
  });

  it('without a server or a service, the error says what did not answer', async () => {
    await expect(connectFleet({ servers: 'nats://127.0.0.1:1' })).rejects.toMatchObject({
      name: 'NoConnectionError',
      message: expect.stringContaining('127.0.0.1:1'),
    });
    const hasty = await connectFleet({ servers: [nats.server.url], timeoutMs: 500 });
    await expect(hasty.request('ops.pool.list', {})).rejects.toMatchObject({
      name: 'NoConnectionError',
      message: expect.stringContaining('ops.pool.list'),
    });
    await hasty.close();
  });
});
