import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { REPORT_KINDS, reportSubject, SERVICES } from '#libs/contracts';
import { accountsConf, connectBus, nodeAccess, type Bus } from '#libs/nats';
import { startNatsServer, until, type NatsServer } from '#libs/testing';
import { run } from './fleet.js';
import { manifest } from './manifests.js';
import { Processes, SLUICE } from './processes.js';

const NODES = ['n1', 'n2.dc1'] as const;
const SECRET = 'passw0rd';

describe('nodes with an account of their own', () => {
  const data = mkdtempSync(join(tmpdir(), 'sluice-e2e-access-'));
  const log = join(data, 'nats.log');
  let server: NatsServer;
  let fleet: FleetClient;
  let processes: Processes;
  const as = (user: string): string => server.url.replace('//', `//${user}:${SECRET}@`);

  beforeAll(async () => {
    const accounts = accountsConf({
      control: [{ user: 'control', password: SECRET }],
      nodes: NODES.map((node) => ({ node, login: { user: node, password: SECRET } })),
    });
    server = await startNatsServer({ config: `${accounts}trace: true\nlog_file: ${JSON.stringify(log)}\n` });
    const env = { ...process.env, NO_COLOR: '1', SLUICE_HEALTH_SECONDS: '0', NATS_URL: as('control') };
    processes = new Processes(data, env);
    for (const service of SERVICES) processes.start(service, ['service', service]);
    for (const node of NODES) {
      mkdirSync(join(data, node, 'root'), { recursive: true });
      const folders = ['--root', join(data, node, 'root'), '--state', join(data, node, 'state')];
      const args = ['applier', '--node', node, '--label', 'role=edge', ...folders];
      processes.start(node, args, { env: { NATS_URL: as(node) } });
    }
    fleet = await connectFleet({ servers: server.url, user: 'control', password: SECRET });
    for (const node of NODES)
      await until(async () => {
        const status = await fleet.get('status', node).catch(() => undefined);
        return status !== undefined && status.incarnation > 0 && status.desired !== '';
      }, `${node} has joined`);
  });
  afterAll(async () => {
    await fleet.close();
    await processes.stopAll();
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  });

  const sluice = (...args: readonly string[]) =>
    run(process.execPath, [SLUICE, ...args], { env: { ...process.env, NO_COLOR: '1', NATS_URL: as('control') } });
  const connectAs = (user: string, inboxPrefix: string): Promise<Bus> =>
    connectBus({ name: user, servers: server.url, user, password: SECRET, inboxPrefix });
  const refusals = (): readonly string[] =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => /violation|authorization/i.test(line));
  const onNode = (node: string, path: string): string => join(data, node, 'root', path);

  test('a rollout with a large file, a plan that asks the nodes, and why need no more than that', async () => {
    const content = randomBytes(2 ** 20);
    writeFileSync(join(data, 'image.bin'), content);
    writeFileSync(
      join(data, 'change.yaml'),
      [
        manifest('File', 'image', { nodeSelector: {}, path: '/opt/image.bin', contentFrom: { file: 'image.bin' } }),
        manifest('File', 'motd', { nodeSelector: {}, path: '/etc/motd', content: 'hello' }),
      ]
        .map((one) => JSON.stringify(one))
        .join('\n---\n'),
    );
    for (const node of NODES) {
      mkdirSync(onNode(node, 'etc'), { recursive: true });
      writeFileSync(onNode(node, 'etc/motd'), 'before');
    }
    const plan = await sluice('plan', '-f', join(data, 'change.yaml'));
    // Only the nodes know that something is there already.
    expect(plan.stdout).toContain('/etc/motd');
    expect(plan.stdout).toMatch(/replaces|already/);
    expect(await sluice('apply', '-f', join(data, 'change.yaml'), '--wait', '2m')).toMatchObject({ code: 0 });
    for (const node of NODES) {
      expect(readFileSync(onNode(node, 'opt/image.bin')).equals(content)).toBe(true);
      expect(readFileSync(onNode(node, 'etc/motd'), 'utf8')).toBe('hello');
      expect(await sluice('why', node)).toMatchObject({ code: 0 });
    }
    expect(refusals()).toEqual([]);
  });

  test('a node uses everything that it may', async () => {
    await sluice('label', 'n1', 'rack=7');
    const lines = readFileSync(log, 'utf8').split('\n');
    const uses = (verb: string): readonly string[] =>
      lines.flatMap((line) => {
        const pattern = new RegExp(`applier n1" - "NODES/user:n1" - <<- \\[${verb} (\\S+)`);
        return pattern.exec(line)?.[1] ?? [];
      });
    const { publish, subscribe } = nodeAccess('n1');
    const [published, subscribed] = [uses('H?PUB'), uses('SUB')];
    const unused = [
      ...publish.filter((allowed) => !published.some((subject) => matches(allowed, subject))),
      ...subscribe.filter((allowed) => !subscribed.some((subject) => matches(allowed, subject))),
    ];
    // What a node reports depends on what happens to it.
    const reports = REPORT_KINDS.map((kind) => reportSubject(kind, 'n1'));
    expect(unused.filter((subject) => !reports.includes(subject))).toEqual([]);
    expect(published.filter((subject) => reports.includes(subject)).length).toBeGreaterThan(0);
  });

  describe('with the credentials of a node', () => {
    let bus: Bus;
    let intruder: Bus['nc'];
    let violations: string[];
    beforeEach(async () => {
      violations = [];
      bus = await connectAs('n1', '_INBOX_n1');
      intruder = bus.nc;
      void (async () => {
        for await (const status of intruder.status())
          if (status.type === 'error') violations.push(status.error.message);
      })();
    });
    afterEach(() => bus.close());

    const FORGED = [
      ...REPORT_KINDS.map((kind) => `node.${kind}.n2_dc1`),
      'alive.n2_dc1',
      'config.desired.people',
      'config.judged.abc',
      'node.lease.granted.default.n1',
      'rollout.succeeded.c1',
      '$KV.leases.n1',
      '$KV.leases.n2_dc1',
      '$KV.configs.n1.abc',
      'push.leases.n2_dc1',
      'push.pace.n2_dc1',
      'push.why.n2_dc1',
      'blobs.abc.0',
      'ops.rollout.abort',
      'ops.node.remove',
      '$JS.API.STREAM.NAMES',
      '$JS.API.STREAM.DELETE.LEDGER',
      '$JS.API.STREAM.PURGE.LEDGER',
      '$JS.API.STREAM.MSG.GET.KV_leases',
      '$JS.API.CONSUMER.CREATE.LEDGER',
      '$JS.API.DIRECT.GET.KV_leases.$KV.leases.n2_dc1',
      '$JS.API.DIRECT.GET.KV_status.$KV.status.n2_dc1',
      '$JS.API.DIRECT.GET.KV_configs.$KV.configs.n2_dc1.abc',
      '$JS.API.DIRECT.GET.KV_leases',
      '$SRV.PING',
    ];
    test.each(FORGED)('nobody may publish %s', async (subject) => {
      intruder.publish(subject, '{}');
      await intruder.flush();
      await until(() => violations.some((text) => text.includes(subject)), 'the server refuses it');
    });

    test.each(['>', '*.>', 'push.>', 'push.*.n2_dc1', 'push.leases.*', '_INBOX.>', '_INBOX_n2_dc1.>', 'alive.*'])(
      'nobody may subscribe to %s',
      async (subject) => {
        intruder.subscribe(subject, { callback: () => undefined });
        await intruder.flush();
        await until(() => violations.some((text) => text.includes(subject)), 'the server refuses it');
      },
    );

    // What it has answered to subjects of another node reaches that node, which takes only what is about itself.
    const WRITES = ['$KV.leases.n2_dc1', 'node.applied.n2_dc1', 'config.desired.people', 'ops.node.remove'];
    test.each([...WRITES, 'alive.n2_dc1'])('no answer to its requests goes to %s', async (reply) => {
      const services = await connectAs('control', '_INBOX');
      const control = services.nc;
      const heard: string[] = [];
      control.subscribe('>', {
        callback: (_, message) => void (message.subject === reply && heard.push(message.string())),
      });
      await control.flush();
      const read = '$JS.API.DIRECT.GET.KV_status.$KV.status.n1';
      intruder.publish(read, '', { reply });
      intruder.publish('node.progress.n1', 'forged', { reply });
      await intruder.flush();
      // This is answered after what it has sent before.
      expect((await intruder.request(read, '')).string()).toContain('"node":"n1"');
      await control.flush();
      await services.close();
      expect(heard.filter((text) => !text.includes('"node":"n2.dc1"'))).toEqual([]);
    });
  });
});

/** As nats-server compares a permission with a subject. */
function matches(permission: string, subject: string): boolean {
  const [wanted, found] = [permission.split('.'), subject.split('.')];
  const isSame = (token: string, i: number): boolean => token === '*' || token === found[i];
  return wanted.at(-1) === '>'
    ? found.length >= wanted.length && wanted.slice(0, -1).every(isSame)
    : found.length === wanted.length && wanted.every((token, i) => isSame(token, i) || token === found[i]);
}
