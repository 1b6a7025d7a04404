import { until } from '#libs/testing';
import { FunctionFleet, type Replica } from './function-fleet.js';

let fleet: FunctionFleet;
let b: Replica;

beforeAll(async () => {
  // So late that a replica says that it is unavailable long before it is silent.
  fleet = await FunctionFleet.start(['cnf-a', 'cnf-b'], { SLUICE_SILENT_SECONDS: '20' });
  b = fleet.replicas[1] as Replica;
});
afterAll(() => fleet.close());

const policy = (name: string): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'Mwan3Policy',
  metadata: { name },
  spec: {
    nodeSelector: { matchLabels: { purpose: 'edge' } },
    members: [{ network: 'wan1', metric: 1, weight: 1 }],
  },
});
const outcomeOf = async (change: string): Promise<string> => (await fleet.ended(change)).outcome;
const leaseOf = async (name: string) => (await fleet.client.list('leases')).get(name)?.lease;
const statusOf = async (name: string) => (await fleet.client.list('status')).get(name);
const reasonOf = async (name: string) => (await statusOf(name))?.unavailable;

test('a replica that does not answer gets no lease, shows why, and catches up when it answers', async () => {
  expect(await outcomeOf(await fleet.apply(policy('one')))).toBe('committed');
  expect(b.objects).toEqual(['policies/one']);
  const before = await leaseOf('cnf-b');

  await b.proxy.cut();
  const reason = await until(() => reasonOf('cnf-b'), 'it says that the replica does not answer');
  expect((await fleet.run('get', 'nodes')).stdout).toContain(` ready,unavailable: ${reason} `);
  expect((await fleet.run('status')).stdout).toContain(`cnf-b is unavailable: ${reason}`);
  expect((await fleet.run('why', 'cnf-b')).stdout).toContain(`unavailable: ${reason}`);

  expect(await outcomeOf(await fleet.apply(policy('two')))).toBe('committed');
  await until(
    async () => (await statusOf('cnf-b'))?.deferred === `unavailable: ${reason}`,
    'it is deferred with the reason',
  );
  expect([await leaseOf('cnf-b'), b.objects]).toEqual([before, ['policies/one']]);

  await b.proxy.restore();
  await until(() => b.objects.length === 2, 'it has the latest');
  await until(async () => (await fleet.fragments())['Mwan3Policy/two'] === '2/2', 'the counts are right');
  expect(await reasonOf('cnf-b')).toBeUndefined();
});

test('it is still known after another copy of the applier took over', async () => {
  await b.proxy.cut();
  await until(() => reasonOf('cnf-b'), 'it says that the replica does not answer');
  await fleet.processes.kill('applier');
  const before = await leaseOf('cnf-b');
  fleet.startApplier('other');
  expect(await outcomeOf(await fleet.apply(policy('three')))).toBe('committed');
  expect((await fleet.fragments())['Mwan3Policy/three']).toBe('1/2');
  expect(await reasonOf('cnf-b')).toContain('ECONNREFUSED');
  expect(await leaseOf('cnf-b')).toBe(before);
  await b.proxy.restore();
  await until(async () => (await fleet.fragments())['Mwan3Policy/three'] === '2/2', 'both have it');
});

test('what answers as another server does is no replica, and reverts nothing', async () => {
  const before = b.objects;
  b.standIn.troubles.status = 404;
  // At once: what is at the address now was a replica when it was last asked.
  const change = await fleet.apply(policy('page'));
  expect(await outcomeOf(change)).toBe('committed');
  const reason = await until(() => reasonOf('cnf-b'), 'it says that no replica answers');
  expect(reason).toContain('is answered 404 (error), which is no answer of a network function');
  expect([b.objects, (await fleet.fragments())['Mwan3Policy/page']]).toEqual([before, '1/2']);
  b.standIn.heal();
  await until(async () => (await fleet.fragments())['Mwan3Policy/page'] === '2/2', 'both have it');
});

test('a replica that fails at one collection, and works otherwise, reverts nothing', async () => {
  b.standIn.troubles.collections = { 'mwan3/v1/policies': { status: 500, text: 'no memory', times: Infinity } };
  expect(await outcomeOf(await fleet.apply(policy('failing')))).toBe('committed');
  const { verdict, reason } = await until(async () => {
    const status = await statusOf('cnf-b');
    return status?.verdict === 'unreachable' ? status : undefined;
  }, 'the lease has ended');
  expect([verdict, reason]).toEqual(['unreachable', expect.stringMatching(/policies is answered 500 \(no memory\)/)]);
  expect((await fleet.fragments())['Mwan3Policy/failing']).toBe('1/2');
  b.standIn.heal();
});
