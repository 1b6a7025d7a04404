import { connectBus, type Bus } from '#libs/nats';
import { connectNodeBus, type NodeBus } from '#libs/client';
import { startService, type RunningService } from '#libs/nest';
import { settingsFrom, SILENT } from '#libs/process';
import { natsFixture, report, until } from '#libs/testing';
import { service as inventory } from '../service.js';
import { HEARTBEATS_PER_SECOND } from '#libs/contracts';
import type { State } from '../core/index.js';
import { Pace } from './pace.js';

describe('the pace of heartbeats', () => {
  const nats = natsFixture();
  let service: RunningService;
  let bus: Bus;
  let node: NodeBus;
  beforeAll(async () => {
    service = await startService(inventory, {
      connection: { servers: nats.server.url },
      settings: settingsFrom({
        SLUICE_HEALTH_SECONDS: '0',
        SLUICE_HEARTBEATS_PER_SECOND: '0.05',
      }),
      logger: SILENT,
    });
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    node = await connectNodeBus({ node: 'n1.dc1', connection: bus });
  });
  afterAll(async () => {
    await node.close();
    await bus.close();
    await service.close();
  });

  it('counts from the request, even if the next heartbeat is lost', () => {
    const sent: string[] = [];
    const pace = new Pace(
      { broadcast: (subject: string, text: string) => sent.push(`${subject} ${text}`) } as unknown as Bus,
      0.05,
    );
    const state = { memo: { present: 1 } } as unknown as State;
    const alive = { node: 'n1.dc1', incarnation: 1, nonce: 1 };
    expect(pace.keep(state, { ...alive, everyMs: 10_000, pacedMs: 0 })).toBe(24_000);
    expect(pace.keep(state, { ...alive, everyMs: 24_000, pacedMs: 24_000 })).toBe(24_000);
    expect(pace.keep(state, { ...alive, everyMs: 60_000, pacedMs: 60_000 })).toBe(60_000);
    expect(sent).toEqual(['push.pace.n1_dc1 {"everyMs":24000}', 'push.pace.n1_dc1 {"everyMs":24000}']);
  });

  it('is requested from a node that sends too many heartbeats, and from no other', async () => {
    const requested: number[] = [];
    node.onPush(({ pace }) => pace !== undefined && requested.push(pace.everyMs));
    await node.report(report('n1.dc1', 'x'));
    // A lost request is repeated: heartbeats are sent until one is answered.
    await until(() => {
      node.alive({ node: 'n1.dc1', incarnation: 1, nonce: 1, everyMs: 10_000, pacedMs: 0 });
      return requested.length > 0;
    }, 'the request arrives');
    expect(new Set(requested)).toEqual(new Set([24_000]));
    node.alive({ node: 'n1.dc1', incarnation: 1, nonce: 1, everyMs: 24_000, pacedMs: 24_000 });
    const before = requested.length;
    await until(() => {
      node.alive({ node: 'n1.dc1', incarnation: 1, nonce: 1, everyMs: 60_000, pacedMs: 60_000 });
      return requested.length > before;
    }, 'another request arrives');
    expect(new Set(requested)).toEqual(new Set([24_000]));
  });
});

test.each([
  [{}, HEARTBEATS_PER_SECOND],
  [{ SLUICE_HEARTBEATS_PER_SECOND: '' }, 400],
  [{ SLUICE_HEARTBEATS_PER_SECOND: '0' }, 0],
  [{ SLUICE_HEARTBEATS_PER_SECOND: '2.5' }, 2.5],
])('%j: %d heartbeats per second', (environment, count) => {
  expect(settingsFrom(environment).heartbeatsPerSecond).toBe(count);
});

test.each(['-1', 'many', 'Infinity'])('rejects %s as a number of heartbeats', (text) => {
  expect(() => settingsFrom({ SLUICE_HEARTBEATS_PER_SECOND: text })).toThrow(
    `SLUICE_HEARTBEATS_PER_SECOND is "${text}", but must be a number from 0`,
  );
});

test('a node is silent after 35 s, or after the configured time', () => {
  expect(
    [settingsFrom({}), settingsFrom({ SLUICE_SILENT_SECONDS: '2' })].map((settings) => settings.silentAfterMs),
  ).toEqual([35_000, 2_000]);
  expect(() => settingsFrom({ SLUICE_SILENT_SECONDS: '0' })).toThrow(
    'SLUICE_SILENT_SECONDS is "0", but must be a number above 0',
  );
});
