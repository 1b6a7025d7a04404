import { rmSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configKey, CONFIGS, decodeReport, encodeView, nodeToken, type NodeReport } from '#libs/contracts';
import { connectBus, ensureTopology, kvSubject, type Bus } from '#libs/nats';
import { natsFixture, until } from '#libs/testing';
import { SILENT } from '../../core/index.js';
import { lease, newBus, takeReports } from '../../testing/memory-node.js';
import { config, file } from '../applier-host.fixture.js';
import { hashOf } from '../index.js';
import { Device, deviceTarget } from './device.fixture.js';
import { serveTargets } from './serve-targets.js';

const COUNT = 16;
const TTL_MS = 1_500;
/** How long each call to a device keeps the process from doing anything else. */
const BUSY_MS = 20;
const CONFIG = config(file('a', 'x'), file('b', 'x'));
const NODES = Array.from({ length: COUNT }, (_, i) => `f-${i}`);

const nats = natsFixture();
let bus: Bus;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-served-'));
  bus = await connectBus({ servers: [nats.server.url], name: 'spec' });
  await ensureTopology(bus, { leaderTtlMs: TTL_MS });
});
afterAll(async () => {
  await bus.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What nodes have reported, and a scheduler that takes it at once. */
function reportsOf(connection: Bus): readonly NodeReport[] {
  const reports: NodeReport[] = [];
  const memory = new Map(NODES.map((node) => [node, newBus()]));
  connection.nc.subscribe('node.*.*', {
    callback: (error, message) => {
      if (error !== null) return;
      const report = decodeReport(message.subject, message.string());
      const own = memory.get(report.node);
      if (own === undefined) return;
      reports.push(report);
      own.reports.push(report);
      takeReports(own);
      if (own.status !== undefined)
        connection.nc.publish(kvSubject('status', nodeToken(report.node)), encodeView('status', own.status));
    },
  });
  return reports;
}

async function grant(connection: Bus, node: string, from: string): Promise<void> {
  const hash = hashOf(CONFIG);
  await connection.publish(kvSubject(CONFIGS, configKey(node, hash)), JSON.stringify(CONFIG));
  const view = lease({ ledger: 100, node, lease: `${node}-l1`, hash, from, applyMs: 120_000 });
  await connection.publish(kvSubject('leases', nodeToken(node)), encodeView('leases', view));
}

it('keeps all targets while they change at once and leave the process no time for its leadership', async () => {
  const reports = reportsOf(bus);
  const connection = await connectBus({ servers: [nats.server.url], name: 'applier' });
  const served = await serveTargets({
    connection,
    name: 'devices',
    folder,
    version: '1',
    heartbeatMs: 1_000,
    log: SILENT,
    leaderTtlMs: TTL_MS,
  });
  const opened: string[] = [];
  const devices = NODES.map((node) => {
    const device = new Device(served.clock);
    const target = deviceTarget(device, node, 'one', served.clock);
    const open: typeof target.open = (...given) => {
      opened.push(node);
      return target.open(...given);
    };
    return { device, target: { ...target, open } };
  });
  served.replace(devices.map(({ target }) => target));
  await until(() => reports.length === COUNT, 'all are announced');
  for (const { device } of devices)
    device.gate = () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
      return Promise.resolve();
    };
  const { hash = '' } = reports[0] ?? {};
  await Promise.all(NODES.map((node) => grant(bus, node, hash)));
  const applied = () => reports.filter(({ verdict }) => verdict === 'applied').map(({ node }) => node);
  await until(() => applied().length === COUNT, 'all are changed');
  for (const { device } of devices) device.gate = () => Promise.resolve();
  expect(devices.map(({ device }) => Object.fromEntries(device.values))).toEqual(NODES.map(() => ({ a: 'x', b: 'x' })));
  // One that was stopped and begun again would have been opened, and announced, a second time.
  expect(opened.sort()).toEqual([...NODES].sort());
  expect(reports.filter(({ kind }) => kind === 'announced').length).toBe(COUNT);
  expect(applied().sort()).toEqual([...NODES].sort());
  await served.stop();
  await connection.close();
});
