import { encodeReport, reportSubject, type NodeReport } from '#libs/contracts';
import { SILENT, settingsFrom } from '#libs/process';
import { natsFixture, startNatsServer, until } from '#libs/testing';
import { connectBus, isConnectionTrouble, Ledger, ServiceNotes, type Bus } from '#libs/nats';
import { connectFleet, type FleetClient } from '#libs/client';
import { counterSpec, heartbeats } from './counter.fixture.js';
import { startService, startServices, type RunningService } from './services.js';

const LEADER_TTL_MS = 1_500;

test('a service does not start in an account without JetStream, and says so', async () => {
  const server = await startNatsServer({ config: 'accounts { A: { users: [{ user: a, password: a }] } }' });
  try {
    const refusal: unknown = await startService(counterSpec('scheduler'), {
      settings: settingsFrom({}),
      connection: { servers: server.url, user: 'a', password: 'a' },
      logger: SILENT,
    }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      name: 'NoJetStreamError',
      message: expect.stringContaining('for the account of this user'),
    });
    // Trying again does not help.
    expect(isConnectionTrouble(refusal)).toBe(false);
  } finally {
    await server.stop();
  }
});

describe('a service with Nest', () => {
  const nats = natsFixture();
  const services: RunningService[] = [];
  let bus: Bus;
  let fleet: FleetClient;

  const started = async (): Promise<RunningService> => {
    const service = await startService(counterSpec('scheduler'), {
      settings: settingsFrom({}),
      connection: { servers: nats.server.url },
      logger: SILENT,
      leaderTtlMs: LEADER_TTL_MS,
    });
    services.push(service);
    return service;
  };
  const report = (node: string): NodeReport => ({
    kind: 'announced',
    v: 1,
    at: '',
    node,
    incarnation: 1,
    nonce: 1,
    seq: 1,
    bootId: '',
    hash: '',
    lease: '',
    verdict: '',
    reason: '',
    restored: false,
    change: '',
    pool: '',
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
  });
  const send = (node: string): Promise<unknown> =>
    bus.js.publish(reportSubject('announced', node), encodeReport(report(node)));

  beforeEach(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    fleet = await connectFleet({ servers: nats.server.url, timeoutMs: 10_000 });
    for await (const { config } of bus.jsm.streams.list()) await bus.jsm.streams.delete(config.name);
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.close()));
    await Promise.all([bus.close(), fleet.close()]);
  });

  it('processes the inputs of a stream in order', async () => {
    const first = await started();
    await until(() => first.ledger?.leading);
    for (let i = 0; i < 20; i += 1) await send('w-1.dc1');
    await until(async () => (await fleet.get('status', 'w-1.dc1'))?.seq === 20);
    await first.close();
    services.length = 0;
    const appended = await new Ledger(bus).lastSequence();
    await send('w-1.dc1');
    const second = await started();
    await until(async () => (await fleet.get('status', 'w-1.dc1'))?.seq === 21);
    expect(await new Ledger(bus).lastSequence()).toBe(appended + 1);
    expect(second.ledger?.cursor).toBe(21);
  });

  it('answers requests, and refuses them with a code and a status', async () => {
    await started();
    await expect(fleet.request('ops.node.skip', { node: 'n1' })).rejects.toMatchObject({
      name: 'OpsError',
      code: 'not-found',
    });
    await send('n1');
    await until(async () => (await fleet.get('status', 'n1'))?.seq === 1);
    expect(await fleet.request('ops.node.skip', { node: 'n1' })).toEqual({ node: 'n1', skipped: true });
    expect(await fleet.request('ops.node.why', { node: 'n1' })).toEqual({ node: 'n1', count: 1 });
  });

  it('refuses a bad request with every reason', async () => {
    const service = await started();
    await until(() => service.ledger?.leading);
    await expect(fleet.request('ops.node.skip', { node: 'N 1', nodes: 2 })).rejects.toMatchObject({
      code: 'bad-request',
      message: expect.stringMatching(/nodes: .*name of a node|name of a node.*nodes: /),
    });
    const reply = await until(() => bus.nc.request('ops.node.skip', 'not json').catch(() => undefined));
    expect([
      reply.headers?.get('Nats-Service-Error-Code'),
      reply.json<{ error: { code: string } }>().error.code,
    ]).toEqual(['400', 'bad-request']);
    const missing = await bus.nc.request('ops.node.skip', '{"node": "n1"}', { timeout: 60_000 });
    expect([missing.headers?.get('Nats-Service-Error-Code'), missing.json()]).toEqual([
      '404',
      { error: { code: 'not-found', message: 'there is no node n1' } },
    ]);
  });

  it('sets aside an input that it cannot decode, and continues', async () => {
    await started();
    await bus.js.publish('node.applied.n1', 'not json');
    await send('n1');
    await until(async () => (await fleet.get('status', 'n1'))?.seq === 1);
    expect((await fleet.inspect()).poison).toEqual([
      expect.objectContaining({
        stream: 'REPORTS',
        sequence: 1,
        subject: 'node.applied.n1',
        reason: expect.stringContaining('JSON'),
      }),
    ]);
  });

  it('receives core NATS messages while it leads', async () => {
    const service = await started();
    await until(() => service.ledger?.leading);
    await until(() => {
      bus.nc.publish('alive.n7', '{}');
      return heartbeats.includes('alive.n7');
    });
  });

  it('publishes a note for operators, once for all copies that say the same, until it is withdrawn', async () => {
    const copies = [await started(), await started()];
    const note = { state: 'bad', words: 'the certificate ran out', todo: 'put another in its place' } as const;
    const notes = async (): Promise<string> => JSON.stringify((await fleet.inspect()).services[0]?.notes);
    for (const { app } of copies) app.get(ServiceNotes).set('certificate', note);
    await until(async () => (await notes()) === JSON.stringify([note]));
    for (const { app } of copies) app.get(ServiceNotes).set('certificate', undefined);
    await until(async () => (await notes()) === '[]');
  });

  it('lets only the leading copy answer, and the other one after it', async () => {
    const first = await started();
    await until(() => first.ledger?.leading);
    const second = await started();
    await send('n1');
    await until(async () => (await fleet.get('status', 'n1'))?.seq === 1);
    const shown = JSON.stringify([{ name: 'scheduler', copies: 2, halted: '', notes: [] }]);
    await until(async () => JSON.stringify((await fleet.inspect()).services) === shown, 'both copies are listed');
    await first.close();
    services.splice(0, 1);
    expect(await fleet.request('ops.node.why', { node: 'n1' })).toEqual({ node: 'n1', count: 1 });
    expect(second.ledger?.leading).toBe(true);
  });

  it('survives a kill of the server: decisions are kept, and inputs continue', async () => {
    const service = await started();
    await until(() => service.ledger?.leading);
    await send('n1');
    await until(async () => (await fleet.get('status', 'n1'))?.seq === 1);
    nats.server.kill();
    await nats.server.restart();
    await until(() =>
      send('n1').then(
        () => true,
        () => false,
      ),
    );
    await until(async () => ((await fleet.get('status', 'n1').catch(() => undefined))?.seq ?? 0) >= 2);
    await until(() => fleet.request('ops.node.why', { node: 'n1' }).catch(() => undefined));
  });

  it('says why a copy has stopped deciding', async () => {
    const service = await started();
    await until(() => service.ledger?.leading);
    await bus.js.publish('node.reported.n1', 'not json');
    await until(() => service.ledger?.halted);
    await until(() =>
      fleet.request('ops.node.why', { node: 'n1' }).then(
        () => false,
        (error: Error) => /cannot be decoded/.test(error.message),
      ),
    );
    await until(
      async () => (await fleet.inspect()).services[0]?.halted.includes('cannot be decoded'),
      'an inspection says it too',
    );
  });

  it('shares its connection and its reading of the ledger with other services of the process', async () => {
    const specs = ['scheduler', 'scheduler-2'].map(counterSpec);
    const { services: both, close } = await startServices(specs, {
      settings: settingsFrom({}),
      connection: { servers: nats.server.url },
      logger: SILENT,
      leaderTtlMs: LEADER_TTL_MS,
    });
    services.push({ ...(both[0] as RunningService), close });
    await until(() => both.some(({ ledger }) => ledger?.leading));
    await send('n1');
    await until(async () => (await fleet.get('status', 'n1'))?.seq === 1);
    const last = await new Ledger(bus).lastSequence();
    await until(() => both.every(({ ledger }) => ledger?.work === last));
    await until(async () => (await bus.streamInfo('LEDGER')).state.consumer_count === 1);
  });

  it('starts without a ledger if it has none, and logs no error', async () => {
    const errors: string[] = [];
    const service = await startService(
      { name: 'gateway', description: '' },
      {
        settings: settingsFrom({}),
        connection: { servers: nats.server.url },
        logger: { ...SILENT, error: (_, message) => errors.push(message) },
      },
    );
    services.push(service);
    expect([service.ledger, errors]).toEqual([undefined, []]);
  });
});
