import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import type { ConfigEntry } from '#libs/contracts';
import { MemoryNodeBus } from '../../../testing/memory-node-bus.js';
import { describeWithNetwork, Namespace } from '../../../testing/network-namespace.js';
import { config, Host } from '../../applier-host.fixture.js';
import { bootClock } from '../../boot.js';
import { hashOf, runApplier } from '../../index.js';
import { decodeJournal } from '../../state/journal-text.js';

const anycastMac = '02:00:00:00:00:01';
const l2 = (name: string, id: number, spec: object = {}): ConfigEntry => ({
  kind: 'Layer2Network',
  name,
  spec: { id, anycastMac, anycastGateways: [`10.${id}.0.1/24`], ...spec },
});
const table = (tableId: number, to: string): ConfigEntry => ({
  kind: 'RoutingTable',
  name: 't',
  spec: { tableId, routes: [{ to, blackhole: true }], rules: [{ priority: 100, to }] },
});
const FIRST = config(
  l2('kept', 7, { mtu: 1_400, vni: 70 }),
  l2('gone', 8, { createMacvlanInterface: true }),
  table(100, '10.1.0.0/16'),
);
const SECOND = config(l2('kept', 7, { mtu: 1_300, vni: 71 }), l2('new', 9), table(101, '10.2.0.0/16'));

/** Runs the process that kills itself before that step. */
function run(host: Host, net: Namespace, dieAt: number, dieAfterMs: number): Promise<void> {
  const testing = join(__dirname, '../../../testing');
  const plan = {
    root: host.root,
    state: host.state,
    first: FIRST,
    second: SECOND,
    dieAt,
    dieAfterMs,
    network: { netns: net.name },
  };
  const child = spawn(
    process.execPath,
    [join(testing, 'run-ts.cjs'), join(testing, 'killed-applier.ts'), JSON.stringify(plan)],
    { stdio: 'ignore' },
  );
  return new Promise((resolve) => void child.on('exit', () => resolve()));
}

const journalOf = (host: Host) => {
  const journal = decodeJournal(readFileSync(join(host.state, 'journal.json'), 'utf8'));
  if (typeof journal === 'string') throw new Error(journal);
  return journal;
};

/** Restarts the killed process, without NATS. */
async function recover(host: Host, net: Namespace, aheadMs: number): Promise<void> {
  const bus = new MemoryNodeBus('n');
  bus.down = true;
  const clock = (): number => bootClock() + aheadMs;
  const applier = await runApplier({
    node: 'n',
    labels: {},
    root: host.root,
    stateDir: host.state,
    bus,
    clock,
    reach: false,
    network: { netns: net.name },
    guardCommand: ['true'],
  });
  try {
    await until(() => journalOf(host).work === undefined, 'the work has ended');
  } finally {
    await applier.stop();
  }
}

/** Everything except random values of the kernel. */
const pictureOf = (net: Namespace): readonly string[] =>
  net
    .picture()
    .map((line) => (line.startsWith('["link","l2.') ? line : line.replace(/"([0-9a-f]{2}:){5}[0-9a-f]{2}"/, '"mac"')));

const POINTS =
  process.env['ALL_POINTS'] === '1'
    ? Array.from({ length: 40 }, (_, i) => [8 + i, i % 3 === 0 ? 3 : 0] as const)
    : ([
        [14, 0],
        [17, 3],
        [22, 0],
        [27, 0],
      ] as const);

describeWithNetwork(['netns'], 'an applier that is killed in a change of the network', () => {
  const pictures = new Map<string, readonly string[]>();
  let host: Host;
  let net: Namespace;
  beforeEach(() => {
    host = new Host();
    net = new Namespace();
  });
  afterEach(async () => {
    await host.end();
    net.end();
  });

  test.each([
    ['the old', FIRST],
    ['the new', SECOND],
  ])('knows %s network', async (_name, wanted) => {
    await host.start({ network: { netns: net.name }, reach: false });
    expect(await host.bus.roll(wanted)).toMatchObject({ kind: 'applied' });
    pictures.set(hashOf(wanted), pictureOf(net));
  });

  test.each(POINTS)(
    'has the old or the new network after a kill before step %i (%i ms into it), without NATS',
    async (dieAt, dieAfterMs) => {
      await run(host, net, dieAt, dieAfterMs);
      await recover(host, net, dieAt % 2 === 0 ? 3_600_000 : 0);
      const { inForce, sound } = journalOf(host);
      expect(sound).toBe(true);
      expect(pictureOf(net)).toEqual(pictures.get(inForce));
    },
  );
});
