import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type ChangeView } from '#libs/contracts';
import { until, startNatsServer, type NatsServer } from '#libs/testing';
import { manifest } from '../e2e/manifests.js';
import { describeWith } from '../e2e/needs.js';
import { Processes, ROOT } from '../e2e/processes.js';
import { RealNode } from './real-node.js';

const NODE = 'p-1.dc1';
const UNIT = 'sluice-applier.service';

describeWith(['systemd-namespaces', 'dpkg-deb'], 'the Debian package', () => {
  let data: string;
  let server: NatsServer;
  let client: FleetClient;
  let processes: Processes;
  let node: RealNode;

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), 'sluice-vm-'));
    execFileSync(process.execPath, [join(ROOT, 'tools/package.cjs'), '--out', data], { cwd: ROOT, stdio: 'pipe' });
    server = await startNatsServer({ dataDir: join(data, 'nats') });
    client = await connectFleet({ servers: [server.url], timeoutMs: 5_000 });
    processes = new Processes(data, { ...process.env, NATS_URL: server.url, SLUICE_HEALTH_SECONDS: '0' });
    for (const service of SERVICES) processes.start(service, ['service', service]);
    mkdirSync(join(data, 'node'));
    node = new RealNode(NODE, join(data, 'node'));
    node.write('srv/1.deb', readFileSync(join(data, debs()[0]!)));
    node.write('srv/2.deb', readFileSync(later(join(data, debs()[0]!))));
    node.start();
    await until(() => isUp(), 'the node is up');
  });

  afterAll(async () => {
    await node.stop();
    await client.close();
    await processes.stopAll();
    await server.stop();
    if (process.env['SLUICE_E2E_KEEP'] === undefined) rmSync(data, { recursive: true, force: true });
  });

  const debs = (): readonly string[] => readdirSync(data).filter((name) => name.endsWith('.deb'));
  const isUp = (): boolean => {
    try {
      return node.run('systemctl', 'is-active', 'basic.target') === 'active';
    } catch {
      return false;
    }
  };
  /** The same package with a later version, and another example of settings. */
  function later(deb: string): string {
    const [folder, made] = [join(data, 'later'), join(data, 'later.deb')];
    execFileSync('dpkg-deb', ['-R', deb, folder]);
    const edit = (file: string, change: (text: string) => string): void =>
      writeFileSync(join(folder, file), change(readFileSync(join(folder, file), 'utf8')));
    edit('DEBIAN/control', (text) => text.replace(/^Version: .*$/m, 'Version: 99.0.0'));
    edit('etc/default/sluice-applier', (text) => `${text}\n# What is new in 99.\n`);
    edit('usr/lib/sluice/applier.cjs', (text) => `${text}\n// 99\n`);
    execFileSync('dpkg-deb', ['--root-owner-group', '--build', folder, made], { stdio: 'pipe' });
    return made;
  }
  // Node.js may not have been installed from a package here.
  const dpkg = (...args: readonly string[]): string => node.run('dpkg', '--force-depends', ...args);
  async function apply(content: string): Promise<ChangeView> {
    const change = await client.publishChange(
      'vm',
      JSON.stringify({ apply: [manifest('File', 'motd', { nodeSelector: {}, path: '/etc/motd-sluice', content })] }),
    );
    return until(async () => {
      const view = await client.get('changes', change);
      return view !== undefined && ['committed', 'rejected', 'ended'].includes(view.phase) ? view : undefined;
    }, `${change} has ended`);
  }
  const views = async () => Promise.all([client.get('nodes', NODE), client.get('status', NODE)]);
  const file = (path: string): string => node.run('cat', path);

  test('installs a unit that does not start before NATS is configured', () => {
    dpkg('-i', '/srv/1.deb');
    expect([node.unit(UNIT, 'LoadState'), node.unit(UNIT, 'ActiveState'), node.unit(UNIT, 'UnitFileState')]).toEqual([
      'loaded',
      'inactive',
      'disabled',
    ]);
    expect(file('/etc/default/sluice-applier')).toContain('#NATS_URL=');
  });

  test('joins the fleet with its settings, hardened, and applies its config', async () => {
    node.run('sh', '-c', `printf 'NATS_URL=%s\nSLUICE_NODE=%s\n' ${server.url} ${NODE} > /etc/default/sluice-applier`);
    node.run('systemctl', 'enable', '--now', UNIT);
    await until(async () => {
      // A service on a busy machine may not have created its buckets yet.
      const [joined, status] = await views().catch(() => []);
      return joined !== undefined && status !== undefined && status.desired !== '' && status.desired === status.hash;
    }, 'the node has joined');
    expect(await apply('one\n')).toMatchObject({ phase: 'committed' });
    expect(file('/etc/motd-sluice')).toBe('one');
    expect([
      node.unit(UNIT, 'ProtectSystem'),
      node.unit(UNIT, 'NoNewPrivileges'),
      node.run('stat', '-c', '%a', '/var/lib/sluice'),
    ]).toEqual(['strict', 'yes', '700']);
  });

  test('is upgraded on a node that keeps its settings, its journal and its config', async () => {
    const before = node.unit(UNIT, 'MainPID');
    const { incarnation } = (await views())[1]!;
    dpkg('--force-confdef', '--force-confold', '-i', '/srv/2.deb');
    expect(node.run('dpkg-query', '-W', '-f', '${Version}', 'sluice-applier')).toBe('99.0.0');
    await until(
      () => node.unit(UNIT, 'ActiveState') === 'active' && node.unit(UNIT, 'MainPID') !== before,
      'the new one runs',
    );
    expect(file('/etc/default/sluice-applier')).toContain(`SLUICE_NODE=${NODE}`);
    expect(await apply('two\n')).toMatchObject({ phase: 'committed' });
    expect([file('/etc/motd-sluice'), (await views())[1]!.incarnation]).toEqual(['two', incarnation]);
  });

  test('is removed and leaves the node unchanged, with everything that a new installation needs to continue', async () => {
    dpkg('-r', 'sluice-applier');
    expect([node.unit(UNIT, 'ActiveState'), node.unit(UNIT, 'LoadState')]).toEqual(['inactive', 'not-found']);
    expect([file('/etc/motd-sluice'), existsSync(join(data, 'node/upper/var/lib/sluice/journal.json'))]).toEqual([
      'two',
      true,
    ]);
    dpkg('-i', '/srv/2.deb');
    node.run('systemctl', 'enable', '--now', UNIT);
    expect(await apply('three\n')).toMatchObject({ phase: 'committed' });
    expect(file('/etc/motd-sluice')).toBe('three');
  });

  test('is purged with its settings and its state, and the config in force stays', () => {
    dpkg('-P', 'sluice-applier');
    expect(
      node.run(
        'sh',
        '-c',
        'ls -d /var/lib/sluice /etc/default/sluice-applier /usr/lib/sluice /usr/bin/sluice-applier 2>/dev/null || true',
      ),
    ).toBe('');
    expect(file('/etc/motd-sluice')).toBe('three');
  });
});
