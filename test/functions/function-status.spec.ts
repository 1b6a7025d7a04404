import { until } from '#libs/testing';
import { FunctionClient } from '../../services/applier/src/shell/functions/function-client.js';
import {
  FunctionStatus,
  whyModuleFails,
  type FunctionStatusReport,
} from '../../services/applier/src/shell/functions/function-status.js';
import { FunctionFleet, type Replica } from './function-fleet.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

const FAILED = { InitConnection: 'fail', details: [{ name: 'siteb', status: 'DOWN' }] };
const HOUR = 3_600_000;

describe('what a replica says about itself', () => {
  let standIn: FunctionStandIn;
  let client: FunctionClient;
  let reports: FunctionStatusReport[];
  let nowMs = 0;
  let status: FunctionStatus;
  beforeEach(async () => {
    standIn = await FunctionStandIn.start({ password: 'secret' });
    client = new FunctionClient({ baseUrl: standIn.baseUrl, user: 'root', password: 'secret', callTimeoutMs: 2_000 });
    reports = [];
    status = new FunctionStatus({ client, report: async (one) => void reports.push(one), clock: () => nowMs });
  });
  afterEach(async () => {
    await client.close();
    await standIn.close();
  });

  it('is reported only when it changes, apart from connections that come and go, and every six hours', async () => {
    await status.look();
    await status.look();
    expect(reports).toEqual([
      { modules: Object.entries(standIn.modules).map(([name, one]) => ({ name, status: one })), failure: '' },
    ]);
    standIn.modules['conntrack'] = { count: 7 };
    await status.look();
    expect(reports).toHaveLength(1);
    standIn.modules['ipsec'] = FAILED;
    await status.look();
    expect(reports[1]?.modules).toContainEqual({ name: 'ipsec', status: FAILED });
    expect(reports[1]?.modules).toContainEqual({ name: 'conntrack', status: { count: 7 } });
    nowMs += 6 * HOUR;
    await status.look();
    expect(reports).toHaveLength(3);
  });

  it('is reported again if that failed, and not at all while the replica does not answer', async () => {
    let tries = 0;
    const flaky = new FunctionStatus({
      client,
      report: () => (++tries === 1 ? Promise.reject(new Error('no bus')) : Promise.resolve()),
      clock: () => 0,
    });
    await flaky.look();
    await flaky.look();
    await flaky.look();
    expect(tries).toBe(2);
    await standIn.close();
    await status.look();
    expect(reports).toEqual([]);
  });

  it('is left out where it is too large, and an error is reported as such', async () => {
    standIn.modules['route'] = ['x'.repeat(300_000)];
    await status.look();
    expect(reports[0]?.modules.find(({ name }) => name === 'route')).toEqual({ name: 'route' });
    expect(reports[0]?.modules.find(({ name }) => name === 'wan')).toHaveProperty('status');
    standIn.onCall = (call) => void (standIn.troubles.status = call.includes('v1/status') ? 400 : undefined);
    await status.look();
    expect(reports[1]).toEqual({ modules: [], failure: 'GET sdewan/v1/status is answered 400 (error)' });
  });

  it('says why a module fails', async () => {
    expect(await whyModuleFails(client, 'ipsec', 1_000)).toBeUndefined();
    standIn.modules['ipsec'] = FAILED;
    expect(await whyModuleFails(client, 'ipsec', 1_000)).toBe(
      'not all connections of ipsec are up: [{"name":"siteb","status":"DOWN"}]',
    );
    expect(await whyModuleFails(client, 'other', 1_000)).toBe(
      'GET sdewan/v1/status/other is answered 400 (Bad request URI)',
    );
  });
});

describe('on a fleet', () => {
  let fleet: FunctionFleet;
  let a: Replica;
  let b: Replica;
  beforeAll(async () => {
    fleet = await FunctionFleet.start(['cnf-a', 'cnf-b']);
    [a, b] = fleet.replicas as [Replica, Replica];
  });
  afterAll(() => fleet.close());

  const edge = { nodeSelector: { matchLabels: { purpose: 'edge' } } };
  const manifest = (kind: string, name: string, spec: object): object => ({
    apiVersion: 'sluice.dev/v1alpha1',
    kind,
    metadata: { name },
    spec: { ...edge, ...spec },
  });
  const shown = async (): Promise<string> => (await fleet.run('get', 'target-status')).stdout;
  const nodes = async (): Promise<string> => (await fleet.run('get', 'nodes')).stdout;

  test('people see what the replicas say', async () => {
    await until(async () => /cnf-a +success +.*wan[^]*cnf-b +success/.test(await shown()), 'both are shown');
    a.standIn.modules['ipsec'] = FAILED;
    await until(async () => /cnf-a +fail/.test(await shown()), 'the failure is shown');
    const { stdout } = await fleet.run('get', 'target-status', 'cnf-a', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ node: 'cnf-a', failure: '' });
    expect((JSON.parse(stdout) as { modules: unknown }).modules).toContainEqual({ name: 'ipsec', status: FAILED });
    a.standIn.modules['ipsec'] = { InitConnection: 'success', details: [] };
    await until(async () => /cnf-a +success/.test(await shown()), 'it works again');
  });

  test('a replica whose connections fail is unhealthy with the reason, and a change that breaks them is undone', async () => {
    const probe = manifest('Probe', 'vpn', { function: { module: 'ipsec' }, interval: '1s', retries: 1 });
    expect((await fleet.ended(await fleet.apply(probe))).outcome).toBe('committed');
    b.standIn.modules['ipsec'] = FAILED;
    await until(async () => /cnf-b .*unhealthy \(vpn/.test(await nodes()), 'it is unhealthy');
    expect((await fleet.run('why', 'cnf-b')).stdout).toContain('not all connections of ipsec are up');
    b.standIn.modules['ipsec'] = { InitConnection: 'success', details: [] };
    await until(async () => !(await nodes()).includes('unhealthy'), 'it is healthy');

    for (const { standIn } of [a, b])
      standIn.onCall = (call) => {
        if (call.startsWith('POST ipsec/v1/proposals')) standIn.modules['ipsec'] = FAILED;
        if (call.startsWith('DELETE ipsec/v1/proposals'))
          standIn.modules['ipsec'] = { InitConnection: 'success', details: [] };
      };
    const bad = { encryption_algorithm: 'aes128', hash_algorithm: 'sha256', dh_group: 'modp3072' };
    const change = await fleet.ended(await fleet.apply(manifest('IpsecProposal', 'p', bad)));
    expect(change.outcome).toBe('reverted');
    expect([a, b].flatMap(({ standIn }) => standIn.config.list('ipsec/v1/proposals'))).toEqual([]);
  });
});
