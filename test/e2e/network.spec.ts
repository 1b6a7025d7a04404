import { until } from '#libs/testing';
import { describeWithNetwork } from '../../services/applier/src/testing/network-namespace.js';
import { LocalInstallation } from './local-installation.js';
import { manifest, type Manifest } from './manifests.js';
import { WIRE, WiredNode } from './wired-node.js';

const storage = manifest('Layer2Network', 'storage', {
  nodeSelector: {},
  id: 7,
  mtu: 1_400,
  anycastMac: '02:00:00:00:00:01',
  anycastGateways: ['10.7.0.1/24'],
});
/** Turns all that goes to the server into a table in which it ends. */
const cut = (tableId: number): Manifest =>
  manifest('RoutingTable', 'cut', {
    nodeSelector: {},
    tableId,
    routes: [{ to: WIRE, blackhole: true }],
    rules: [{ priority: 10, to: WIRE }],
  });
const isCut = (node: WiredNode): boolean => node.net.list('rule', 'show', 'priority', '10').length > 0;

interface Change {
  readonly change: string;
}

describeWithNetwork(['netns'], 'a change of the network that cuts the node off', () => {
  const place = new LocalInstallation();
  const node = new WiredNode();
  let url: string;
  let before: readonly string[];

  const apply = async (...manifests: readonly Manifest[]): Promise<string> =>
    (await place.json<Change>('apply', '-f', place.write('change.json', ...manifests))).change;
  const ended = (change: string): Promise<string> =>
    until(
      async () => {
        const { stdout } = await place.run('get', 'changes', change, '-o', 'json');
        const { phase, outcome } = JSON.parse(stdout) as { phase: string; outcome?: string };
        return phase === 'ended' ? outcome : phase === 'committed' || phase === 'rejected' ? phase : undefined;
      },
      `${change} ends`,
      60_000,
    );

  beforeAll(async () => {
    const server = await place.up('--nodes', '0');
    url = await node.lay(Number(new URL(server).port));
    node.start(url);
    expect(await ended(await apply(manifest('Pool', 'all', { nodeSelector: {}, applyTimeout: '10s' })))).toBe(
      'committed',
    );
    await until(async () => (await place.run('get', 'nodes', 'wired')).code === 0, 'the node has joined', 30_000);
    expect(await ended(await apply(storage))).toBe('committed');
    await until(() => node.net.list('link', 'show', 'dev', 'l2.7').length > 0, 'the node has its network', 30_000);
    await until(() => node.journal.work === undefined, 'the node works on nothing');
    before = node.net.picture();
  }, 120_000);

  afterAll(async () => {
    await node.close();
    await place.close();
  });

  test('is taken back by another process when the applier was killed in the middle of it', async () => {
    const change = await apply(cut(100));
    await until(() => isCut(node), 'the change is in force', 30_000);
    await node.kill();
    expect(isCut(node)).toBe(true);
    await until(() => !isCut(node), 'the guard rolls back', 30_000);
    await until(() => node.journal.work === undefined, 'the guard has ended the work');
    expect(node.net.picture()).toEqual(before);
    expect(node.journal.lastDealt).toMatchObject({
      verdict: 'failed',
      reason: expect.stringMatching(/^not confirmed \d+ ms after the lease was read/) as string,
    });
    node.start(url);
    expect(await ended(change)).toBe('reverted');
  }, 120_000);

  test('is taken back by another process when the applier hangs, which is ended', async () => {
    const change = await apply(cut(101));
    await until(() => isCut(node), 'the change is in force', 60_000);
    await node.kill('SIGSTOP');
    await node.gone();
    await until(() => !isCut(node), 'the guard rolls back', 30_000);
    await until(() => node.journal.work === undefined, 'the guard has ended the work');
    expect(node.net.picture()).toEqual(before);
    node.start(url);
    expect(await ended(change)).toBe('reverted');
  }, 180_000);

  test('is taken back by the applier itself, which blames the config, so that it is refused from then on', async () => {
    const change = await apply(cut(102));
    await until(() => isCut(node), 'the change is in force', 60_000);
    expect(await ended(change)).toBe('reverted');
    expect(node.net.picture()).toEqual(before);
    const { stdout } = await place.run('get', 'known-bad', '-o', 'json');
    expect(stdout).toContain('control-plane:bus passed before and fails now');
    expect(await ended(await apply(cut(102)))).toBe('rejected');
    expect(node.net.picture()).toEqual(before);
  }, 180_000);
});
