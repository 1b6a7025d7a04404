import { DnsServer, until } from '#libs/testing';
import { FunctionFleet, type Replica } from './function-fleet.js';

const HOST = 'db.example.com';

let fleet: FunctionFleet;
let dns: DnsServer;
let a: Replica;
let b: Replica;

beforeAll(async () => {
  dns = await DnsServer.start();
  fleet = await FunctionFleet.start(['cnf-a', 'cnf-b'], {
    SLUICE_DNS_SERVERS: dns.address,
    SLUICE_LOOKUP_SECONDS: '0.2',
  });
  [a, b] = fleet.replicas as [Replica, Replica];
});
afterAll(async () => {
  await fleet.close();
  await dns.close();
});

const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { nodeSelector: { matchLabels: { purpose: 'edge' } }, ...spec },
});
const service = manifest('CNFService', 'db', { fullname: HOST, port: 5432, dport: 15_432 });
const natsOf = ({ standIn }: Replica): readonly string[] =>
  standIn.config
    .list('nat/v1/nats')
    .map(({ name, dest_ip: to }) => `${String(name)} ${String(to)}`)
    .sort();
const bothHave = (...nats: readonly string[]) =>
  until(() => JSON.stringify([natsOf(a), natsOf(b)]) === JSON.stringify([nats, nats]), `both have ${nats.join()}`);
const namesChanges = async () =>
  [...(await fleet.client.list('changes')).values()].filter(({ source }) => source === 'names');
/** Every name was looked up once more, and the answers had their effects. */
async function looksAgain(): Promise<void> {
  const before = dns.questions.length;
  await until(() => dns.questions.length >= before + 3, 'names are looked up again');
}

test('a service waits for its name, gets its addresses, and new ones in a rollout', async () => {
  const change = await fleet.apply(service);
  await until(async () => (await fleet.client.list('changes')).get(change)?.needs.length === 1, 'it waits');
  await until(
    async () => (await fleet.run('doctor')).stdout.includes(`${HOST} (there is no such name)`),
    'doctor says why',
  );
  dns.addresses.set(HOST, ['192.0.2.9', '192.0.2.10']);
  expect((await fleet.ended(change)).outcome).toBe('committed');
  await bothHave('dbnat 192.0.2.9');

  // Another order of answers, and an address that is not used, change nothing on the replicas.
  const before = (await namesChanges()).length;
  dns.addresses.set(HOST, ['192.0.2.10', '192.0.2.9']);
  await looksAgain();
  expect((await namesChanges()).length).toBe(before);

  dns.addresses.set(HOST, ['192.0.2.77']);
  await bothHave('dbnat 192.0.2.77');
  const changes = await until(async () => {
    const all = await namesChanges();
    return all.every(({ phase }) => phase === 'committed') ? all : undefined;
  }, 'the changes of addresses end');
  expect(changes.map(({ message, nodes, author }) => ({ message, nodes, author }))).toEqual([
    { message: `${HOST}: none → 192.0.2.9, 192.0.2.10`, nodes: 0, author: 'sluice' },
    { message: `${HOST}: 192.0.2.9, 192.0.2.10 → 192.0.2.77`, nodes: 2, author: 'sluice' },
  ]);
  expect(await fleet.fragments()).toMatchObject({ 'CNFService/db': '2/2' });
});

test('a look-up that fails deletes nothing, and an operator is told', async () => {
  const before = (await namesChanges()).length;
  dns.isFailing = true;
  await until(async () => (await fleet.run('doctor')).stdout.includes('ESERVFAIL'), 'doctor tells');
  await looksAgain();
  dns.isFailing = false;
  dns.addresses.delete(HOST);
  await until(async () => (await fleet.run('doctor')).stdout.includes('there is no such name'), 'doctor tells');
  await bothHave('dbnat 192.0.2.77');
  expect((await namesChanges()).length).toBe(before);
  dns.addresses.set(HOST, ['192.0.2.77']);
  await until(async () => !(await fleet.run('doctor')).stdout.includes('there is no such name'), 'doctor is content');
});

test('nothing is published again after the services are killed', async () => {
  const before = (await namesChanges()).length;
  await fleet.processes.kill('services');
  fleet.startServices();
  await looksAgain();
  expect((await namesChanges()).length).toBe(before);
  dns.addresses.set(HOST, ['192.0.2.78']);
  await bothHave('dbnat 192.0.2.78');
});

test('an object that was deleted by hand is found, and named as the object that it is', async () => {
  // A replica without any object counts as restarted, and gets everything again at once.
  const fixed = manifest('CNFService', 'web', { fullname: '192.0.2.1', port: 80, dport: 8080 });
  expect((await fleet.ended(await fleet.apply(fixed))).outcome).toBe('committed');
  await bothHave('dbnat 192.0.2.78', 'webnat 192.0.2.1');
  a.standIn.config.delete('nat/v1/nats', 'dbnat');
  await until(async () => (await fleet.run('get', 'drift')).stdout.includes('CNFNAT/dbnat'), 'the drift is found');
  const repair = await fleet.apply(
    manifest('Pool', 'edge', { maxUnavailable: 1, applyTimeout: '30s', drift: 'repair' }),
  );
  expect((await fleet.ended(repair)).outcome).toBe('committed');
  await bothHave('dbnat 192.0.2.78', 'webnat 192.0.2.1');
});

test('when the service is deleted, its objects go, and then its name', async () => {
  const deleted = await fleet.run('delete', 'CNFService', 'db');
  expect(deleted.code).toBe(0);
  await bothHave('webnat 192.0.2.1');
  const names = async () =>
    [...(await fleet.client.list('fragments')).values()].filter(
      ({ fragment, gone }) => fragment?.kind === 'ResolvedName' && !gone,
    );
  await until(async () => (await names()).length === 0, 'the name is gone');
});
