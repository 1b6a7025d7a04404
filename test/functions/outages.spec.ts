import { until } from '#libs/testing';
import { FunctionFleet, type Replica } from './function-fleet.js';

/** Every case uses its own objects, named after it, on the same two replicas. */
let fleet: FunctionFleet;
let a: Replica;
let b: Replica;

beforeAll(async () => {
  fleet = await FunctionFleet.start(['cnf-a', 'cnf-b']);
  [a, b] = fleet.replicas as [Replica, Replica];
  const pool = manifest('Pool', 'edge', { maxUnavailable: 1, applyTimeout: '30s' });
  expect((await fleet.ended(await fleet.apply(pool))).outcome).toBe('committed');
});
afterAll(() => fleet.close());

const edge = { nodeSelector: { matchLabels: { purpose: 'edge' } } };
const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { ...edge, ...spec },
});
const policy = (name: string): object =>
  manifest('Mwan3Policy', name, { members: [{ network: 'wan1', metric: 1, weight: 1 }] });
const rule = (name: string, to: string, port: number): object =>
  manifest('Mwan3Rule', name, { policy: to, src_ip: '', dest_port: port, proto: 'tcp' });

/** Both replicas have policy1, rule1 and rule2. */
async function begin(): Promise<void> {
  const change = await fleet.apply(policy('policy1'), rule('rule1', 'policy1', 81), rule('rule2', 'policy1', 82));
  expect((await fleet.ended(change)).outcome).toBe('committed');
  expect([a.objects, b.objects]).toEqual([START, START]);
  expect(await fleet.fragments()).toEqual({
    'Mwan3Policy/policy1': '2/2',
    'Mwan3Rule/rule1': '2/2',
    'Mwan3Rule/rule2': '2/2',
  });
}

/** Everything is deleted again, and both replicas are empty. */
afterEach(async () => {
  // What refers to something else comes later in the alphabet.
  const names = Object.keys(await fleet.fragments()).reverse();
  for (const name of names) await fleet.run('delete', ...name.split('/'), '--wait');
  await until(() => a.objects.length + b.objects.length === 0, 'both replicas are empty');
});

const START = ['policies/policy1', 'rules/rule1', 'rules/rule2'];
const END = ['policies/policy1', 'rules/rule2', 'rules/rule3'];
const port = (replica: Replica, name: string): unknown => replica.object('mwan3/v1/rules', name)?.['dest_port'];

/** While something is away: rule1 is deleted, rule3 is added, and rule2 is updated. */
async function change(updates = true): Promise<readonly string[]> {
  const added = await fleet.apply(rule('rule3', 'policy1', 83), ...(updates ? [rule('rule2', 'policy1', 8282)] : []));
  const deleted = await fleet.run('delete', 'Mwan3Rule', 'rule1');
  expect(deleted.code).toBe(0);
  return [added, deleted.stdout.trim()];
}

/** Both replicas have the latest config, without doubles, and everything says so. */
async function isLatest(rule2 = 8282): Promise<void> {
  await until(
    () => JSON.stringify([a.objects, b.objects]) === JSON.stringify([END, END]),
    'both have the latest config',
  );
  expect([a, b].map((replica) => [port(replica, 'rule2'), port(replica, 'rule3')])).toEqual([
    [String(rule2), '83'],
    [String(rule2), '83'],
  ]);
  const counts = { 'Mwan3Policy/policy1': '2/2', 'Mwan3Rule/rule2': '2/2', 'Mwan3Rule/rule3': '2/2' };
  let shown: object = {};
  await until(async () => {
    shown = await fleet.fragments();
    return JSON.stringify(shown) === JSON.stringify(counts);
  }, 'the counts are right').catch(() => expect(shown).toEqual(counts));
}

const isSilent = async (name: string): Promise<boolean> =>
  (await fleet.client.list('nodes')).get(name)?.state === 'silent';

/** The other replica has the latest config, and this one is waited for. */
async function goesOnWithout(name: string, changes: readonly string[]): Promise<void> {
  for (const id of changes) expect((await fleet.ended(id)).outcome).toBe('committed');
  expect(a.objects).toEqual(END);
  expect(await fleet.fragments()).toEqual({
    'Mwan3Policy/policy1': '2/2',
    'Mwan3Rule/rule1': `removing, still on ${name}`,
    'Mwan3Rule/rule2': '1/2',
    'Mwan3Rule/rule3': '1/2',
  });
}

test('a replica is stopped, and returns empty', async () => {
  await begin();
  await b.stop();
  await until(() => isSilent('cnf-b'), 'the replica is silent');
  await goesOnWithout('cnf-b', await change());
  await b.startEmpty();
  await isLatest();
  // A new container has started its services without the config.
  expect(b.standIn.services).toContain('restart mwan3');
});

test.each([
  ['before the last write', 'POST mwan3/v1/rules'],
  ['before its service is told', 'PUT v1/service/mwan3'],
])('a replica returns empty in the middle of a change, %s', async (_, moment) => {
  await begin();
  const { standIn } = b;
  standIn.onCall = (call) => {
    if (!call.startsWith(moment)) return;
    standIn.onCall = () => undefined;
    standIn.empty();
  };
  for (const id of await change()) expect((await fleet.ended(id)).outcome).toBe('committed');
  await isLatest();
});

test('a replica is cut off and keeps running', async () => {
  await begin();
  await b.proxy.cut();
  await until(() => isSilent('cnf-b'), 'the replica is silent');
  await goesOnWithout('cnf-b', await change());
  expect(b.objects).toEqual(START);
  await b.proxy.restore();
  await isLatest();
});

test('all services are down', async () => {
  await begin();
  await fleet.processes.kill('services');
  await fleet.processes.kill('applier');
  await change();
  expect([a.objects, b.objects]).toEqual([START, START]);
  fleet.startServices();
  fleet.startApplier('applier');
  await isLatest();
});

test('the services are down, and then a replica is stopped', async () => {
  await begin();
  await fleet.processes.kill('services');
  await fleet.processes.kill('applier');
  await b.stop();
  await change(false);
  fleet.startServices();
  fleet.startApplier('applier');
  await until(() => JSON.stringify(a.objects) === JSON.stringify(END), 'the other replica has the latest config');
  await b.startEmpty();
  await isLatest(82);
});

test('the applier is killed in the middle of a change, and another copy finishes it', async () => {
  await begin();
  fleet.startApplier('other');
  for (const { standIn } of [a, b]) standIn.troubles.delayMs = 300;
  const id = await fleet.apply(rule('rule3', 'policy1', 83));
  await until(() => a.objects.includes('rules/rule3') || b.objects.includes('rules/rule3'), 'a replica is changing');
  await fleet.processes.kill('applier');
  for (const { standIn } of [a, b]) standIn.heal();
  expect(['committed', 'reverted']).toContain((await fleet.ended(id)).outcome);
  const expected = [...START, 'rules/rule3'];
  await until(
    () => JSON.stringify([a.objects, b.objects]) === JSON.stringify([expected, expected]),
    'both replicas have the change',
  );
  await fleet.processes.stop('other');
  fleet.startApplier('applier');
});
