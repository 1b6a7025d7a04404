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
/** Routes everything to the server into a table that drops it. */
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
  /** Without this, a change is committed while the node is deferred: silent, or still unknown in the change before. */
  const isReady = (): Promise<unknown> =>
    until(async () => {
      const { state } = await place.json<{ state: string }>('get', 'nodes', 'wired');
      const { phase } = await place.json<{ phase: string }>('get', 'leases', 'wired');
      return state === 'ready' && phase === 'released';
    }, 'the node is ready, and holds no lease');
  const ended = (change: string): Promise<string> =>
    until(async () => {
      const { stdout } = await place.run('get', 'changes', change, '-o', 'json');
      const { phase, outcome } = JSON.parse(stdout) as { phase: string; outcome?: string };
      return phase === 'ended' ? outcome : phase === 'committed' || phase === 'rejected' ? phase : undefined;
    }, `${change} ends`);

  beforeAll(async () => {
    const server = await place.up('--nodes', '0');
    url = await node.lay(Number(new URL(server).port));
    node.start(url);
    expect(await ended(await apply(manifest('Pool', 'all', { nodeSelector: {}, applyTimeout: '30s' })))).toBe(
      'committed',
    );
    await until(async () => (await place.run('get', 'nodes', 'wired')).code === 0, 'the node has joined');
    expect(await ended(await apply(storage))).toBe('committed');
    await until(() => node.net.list('link', 'show', 'dev', 'l2.7').length > 0, 'the node has its network');
    await until(() => node.journal.work === undefined, 'the node has no work in progress');
    before = node.net.picture();
  });

  afterAll(async () => {
    await node.close();
    await place.close();
  });

  test('that refers to a VRF which does not exist yet waits for it, and does not hold up others', async () => {
    const network = manifest('Layer2Network', 'late', { nodeSelector: {}, id: 8, vrf: 'red' });
    const plan = await place.json('plan', '-f', place.write('late.json', network));
    expect(plan).toMatchObject({ rejected: [], needs: ['Vrf/red'], missing: [{ fragment: 'Layer2Network/late' }] });
    const late = await apply(network);
    await until(async () => (await place.run('status', late)).stdout.includes('needs Vrf/red until '), 'it waits');
    // The reasons are in a view of another service.
    const why =
      'needs Vrf/red, which does not exist yet (Layer2Network/late spec.vrf: the node has no Vrf for the VRF red';
    await until(async () => (await place.run('why', late)).stdout.includes(why), 'why says who needs it');
    expect(await ended(await apply(manifest('File', 'other', { nodeSelector: {}, path: '/o', content: 'o' })))).toBe(
      'committed',
    );
    expect(node.net.list('link', 'show', 'dev', 'l2.8')).toEqual([]);

    // Few test machines can have VRFs, so the correction refers to none.
    const correction = manifest('Layer2Network', 'late', { nodeSelector: {}, id: 8 });
    expect(await ended(await apply(correction))).toBe('committed');
    expect(await ended(late)).toBe('superseded');
    await until(() => node.net.list('link', 'show', 'dev', 'l2.8').length > 0, 'the node has the network');
    for (const [kind, name] of [
      ['Layer2Network', 'late'],
      ['File', 'other'],
    ] as const)
      expect((await place.run('delete', kind, name, '--wait')).code).toBe(0);
    await until(() => node.journal.work === undefined, 'the node has no work in progress');
    expect(node.net.picture()).toEqual(before);
  });

  test('is rolled back by another process if the applier was killed during it', async () => {
    const change = await apply(cut(100));
    await until(() => isCut(node), 'the change is in force');
    await node.kill();
    expect(isCut(node)).toBe(true);
    await until(() => !isCut(node), 'the guard rolls back');
    await until(() => node.journal.work === undefined, 'the guard has finished the rollback');
    expect(node.net.picture()).toEqual(before);
    expect(node.journal.lastDealt).toMatchObject({
      verdict: 'failed',
      reason: expect.stringMatching(/^not confirmed \d+ ms after the lease was read/) as string,
    });
    node.start(url);
    expect(await ended(change)).toBe('reverted');
  });

  test('is rolled back by another process if the applier hangs, and the applier is killed', async () => {
    await isReady();
    const change = await apply(cut(101));
    await until(() => isCut(node), 'the change is in force');
    await node.kill('SIGSTOP');
    await node.gone();
    await until(() => !isCut(node), 'the guard rolls back');
    await until(() => node.journal.work === undefined, 'the guard has finished the rollback');
    expect(node.net.picture()).toEqual(before);
    node.start(url);
    expect(await ended(change)).toBe('reverted');
  });

  test('is rolled back by the applier itself, which blames the config, so that it is refused from then on', async () => {
    await isReady();
    const change = await apply(cut(102));
    await until(() => isCut(node), 'the change is in force');
    expect(await ended(change)).toBe('reverted');
    expect(node.net.picture()).toEqual(before);
    const { stdout } = await place.run('get', 'known-bad', '-o', 'json');
    expect(stdout).toContain('control-plane:bus passed before and fails now');
    expect(await ended(await apply(cut(102)))).toBe('rejected');
    expect(node.net.picture()).toEqual(before);
  });
});
