import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type ChangeView, type StatusView } from '#libs/contracts';
import { until, startNatsServer, type NatsServer } from '#libs/testing';
import { manifest, type Manifest } from '../e2e/manifests.js';
import { describeWith } from '../e2e/needs.js';
import { Processes } from '../e2e/processes.js';
import { RealNode } from './real-node.js';

const NODE = 'v-1.dc1';
const DEMO = 'demo.service';
const everywhere = (kind: string, name: string, spec: object): Manifest =>
  manifest(kind, name, { nodeSelector: {}, ...spec });
const demo = (command: string, more: object = {}): Manifest =>
  everywhere('SystemdUnit', 'demo', {
    name: DEMO,
    content: `[Service]\nExecStart=${command}\n[Install]\nWantedBy=sluice-node.target\n`,
    enabled: true,
    state: 'started',
    ...more,
  });

describeWith(['systemd-namespaces'], 'a node with a real systemd', () => {
  let data: string;
  let server: NatsServer;
  let client: FleetClient;
  let processes: Processes;
  let node: RealNode;

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), 'sluice-vm-'));
    server = await startNatsServer({ dataDir: join(data, 'nats') });
    client = await connectFleet({ servers: [server.url], timeoutMs: 5_000 });
    processes = new Processes(data, { ...process.env, NATS_URL: server.url, SLUICE_HEALTH_SECONDS: '0' });
    for (const service of SERVICES) processes.start(service, ['service', service]);
    mkdirSync(join(data, 'node'));
    node = new RealNode(NODE, join(data, 'node'), server.url);
    node.start();
    // Until it has joined, changes do not reach it.
    await until(async () => {
      const [joined, status] = await Promise.all([client.get('nodes', NODE), client.get('status', NODE)]).catch(
        () => [],
      );
      return joined !== undefined && status !== undefined && status.desired !== '' && status.desired === status.hash;
    }, 'the node has joined');
  });

  afterAll(async () => {
    await node.stop();
    await client.close();
    await processes.stopAll();
    await server.stop();
    if (process.env['SLUICE_E2E_KEEP'] === undefined) rmSync(data, { recursive: true, force: true });
  });

  const publish = (body: object): Promise<string> => client.publishChange('vm', JSON.stringify(body));
  async function ended(change: string): Promise<ChangeView> {
    const isOver = (view: ChangeView | undefined): ChangeView | undefined =>
      view !== undefined && ['committed', 'rejected', 'ended'].includes(view.phase) ? view : undefined;
    return until(async () => isOver(await client.get('changes', change)), `${change} has ended`).catch(
      (error: unknown) => {
        throw new Error(`${(error as Error).message}\n${node.log.split('\n').slice(-20).join('\n')}`);
      },
    );
  }
  const apply = async (...manifests: readonly Manifest[]): Promise<ChangeView> =>
    ended(await publish({ apply: manifests }));
  /** Views are written one after another: the end of a change may be visible before the report of the node. */
  const untilReason = (reason: string, verdict: StatusView['verdict']): Promise<StatusView> =>
    until(async () => {
      const status = await client.get('status', NODE);
      return status?.reason.includes(reason) === true && status.verdict === verdict ? status : undefined;
    }, `the node says ${verdict}: ${reason}`);
  const pid = (): string => node.unit(DEMO, 'MainPID');

  test('announces what systemd allows', async () => {
    const { capabilities } = (await client.get('nodes', NODE))!;
    expect(capabilities).toEqual(
      expect.arrayContaining([
        'action:daemon-reload',
        'action:reboot',
        'action:reload',
        'action:restart',
        'kind:SshKeys',
        'kind:SystemdUnit',
      ]),
    );
    // /proc/sys is read-only there, and the capabilities do not claim otherwise.
    expect(capabilities).not.toContain('kind:Sysctl');
  });

  test('gets a unit: written, enabled and started', async () => {
    expect(await apply(demo('/bin/sleep 1000'))).toMatchObject({ phase: 'committed' });
    expect([
      node.unit(DEMO, 'ActiveState'),
      node.unit(DEMO, 'UnitFileState'),
      node.unit(DEMO, 'NeedDaemonReload'),
    ]).toEqual(['active', 'enabled', 'no']);
  });

  test('restarts it when it changes, and reloads nothing else', async () => {
    const before = pid();
    expect(
      await apply(demo('/bin/sleep 2000', { dropIns: [{ name: '10-nice.conf', content: '[Service]\nNice=7\n' }] })),
    ).toMatchObject({ phase: 'committed' });
    expect(pid()).not.toBe(before);
    expect([node.unit(DEMO, 'ActiveState'), node.run('ps', '-o', 'ni=,args=', '-p', pid()).trim()]).toEqual([
      'active',
      '7 /bin/sleep 2000',
    ]);
  });

  test('refuses a unit that systemd rejects, and running units keep running', async () => {
    const before = pid();
    const change = await apply(
      demo('/bin/sleep 3000', { dropIns: [{ name: '10-nice.conf', content: '[Service]\nType=bogus\n' }] }),
    );
    expect(change).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await untilReason('Failed to parse service type', 'invalid');
    expect([pid(), node.unit(DEMO, 'ActiveState')]).toEqual([before, 'active']);
  });

  test('really reboots during a lease, and the next boot confirms', async () => {
    const before = node.bootId;
    const rebooting = everywhere('DisruptionPolicy', 'boot', {
      files: [{ path: '/etc/boot-me', actions: [{ kind: 'drain' }, { kind: 'reboot' }] }],
    });
    expect(await apply(rebooting)).toMatchObject({ phase: 'committed' });
    expect(await apply(everywhere('File', 'boot-me', { path: '/etc/boot-me', content: 'new\n' }))).toMatchObject({
      phase: 'committed',
    });
    expect(node.bootId).not.toBe(before);
    expect([node.run('cat', '/etc/boot-me'), node.unit(DEMO, 'ActiveState')]).toEqual(['new', 'active']);
    expect(await untilReason('', 'applied')).toMatchObject({ restored: true });
  });

  test('rolls back with one more reboot if a probe fails after it', async () => {
    const probe = everywhere('Probe', 'same-boot', {
      file: { path: '/run/was-here', matches: '^yes' },
      retries: 0,
      timeout: '1s',
    });
    node.run('sh', '-c', 'echo yes > /run/was-here');
    const before = node.bootId;
    const change = await apply(probe, everywhere('File', 'boot-me', { path: '/etc/boot-me', content: 'newer\n' }));
    expect(change).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    expect(node.run('cat', '/etc/boot-me')).toBe('new');
    expect(node.bootId).not.toBe(before);
    expect(await untilReason('probe same-boot passed before and fails now', 'failed')).toMatchObject({
      restored: true,
    });
  });

  test('whose unit does not stop reports that in time, is drained and rebooted, and runs the new one', async () => {
    const stubborn = (seconds: number): Manifest => {
      const stop = '/bin/sh -c "[ ! -e /run/stubborn ] || exec sleep 1000"';
      return demo('', {
        content: `[Service]\nExecStart=/bin/sleep ${seconds}\nExecStop=${stop}\nTimeoutStopSec=12s\n[Install]\nWantedBy=sluice-node.target\n`,
        dropIns: undefined,
      });
    };
    expect(await apply(everywhere('Pool', 'quick', { maxUnavailable: 1, applyTimeout: '30s' }))).toMatchObject({
      phase: 'committed',
    });
    expect(await apply(stubborn(1_500))).toMatchObject({ phase: 'committed' });
    const before = node.bootId;
    node.run('touch', '/run/stubborn');
    expect(await apply(stubborn(2_000))).toMatchObject({ phase: 'committed' });
    expect(await untilReason('the machine was restarted instead', 'applied')).toMatchObject({ restored: true });
    expect(await client.get('leases', NODE)).toMatchObject({
      because: 'applied',
      actions: [{ kind: 'drain' }, { kind: 'reboot' }],
    });
    expect(node.bootId).not.toBe(before);
    expect(node.run('ps', '-o', 'args=', '-p', pid())).toBe('/bin/sleep 2000');
    expect(await ended(await publish({ delete: [{ kind: 'Pool', name: 'quick' }] }))).toMatchObject({
      phase: 'committed',
    });
  });

  test('escalates a failed restart to a reboot, drained by its own lease, and rolls back if the unit fails again', async () => {
    const before = node.bootId;
    const number = async (): Promise<number> => Number((await client.get('leases', NODE))!.lease.split('-l').at(-1));
    const first = await number();
    const change = await apply(
      demo('/bin/false', {
        content:
          '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/false\n[Install]\nWantedBy=sluice-node.target\n',
        state: undefined,
      }),
    );
    expect(change).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    expect(await untilReason('demo.service has failed', 'failed')).toMatchObject({ restored: true });
    expect(node.bootId).not.toBe(before);
    expect(await client.get('leases', NODE)).toMatchObject({
      kind: 'forward',
      because: 'failed',
      actions: [{ kind: 'drain' }, { kind: 'reboot' }],
    });
    expect(await number()).toBe(first + 2);
    expect([node.unit(DEMO, 'ActiveState'), node.run('ps', '-o', 'args=', '-p', pid())]).toEqual([
      'active',
      '/bin/sleep 2000',
    ]);
  });

  test('whose /etc cannot be written fails, makes nothing known-bad, and is restored', async () => {
    node.run('mount', '--bind', '/etc', '/etc');
    node.run('mount', '-o', 'remount,bind,ro', '/etc');
    expect(await apply(everywhere('File', 'other', { path: '/etc/other', content: 'x\n' }))).toMatchObject({
      phase: 'ended',
      outcome: 'reverted',
    });
    expect(await untilReason('EROFS', 'failed')).toMatchObject({ restored: true });
    node.run('umount', '/etc');
    expect(await apply(everywhere('File', 'other', { path: '/etc/other', content: 'x\n' }))).toMatchObject({
      phase: 'committed',
    });
  });

  test('killed completely during the restart of a unit ends with the old or the new unit, and runs it', async () => {
    const slow =
      '[Service]\nExecStartPre=/bin/sleep 3\nExecStart=/bin/sleep 4000\n[Install]\nWantedBy=sluice-node.target\n';
    const [before, change] = [node.bootId, await publish({ apply: [demo('', { content: slow, dropIns: undefined })] })];
    await until(
      () => node.journal.includes('"phase":"forward"') && node.unit(DEMO, 'ActiveState') === 'activating',
      'the unit is on its way',
    );
    await node.crash();
    const { phase } = await ended(change);
    expect(node.bootId).not.toBe(before);
    await until(() => node.unit(DEMO, 'ActiveState') === 'active', 'the unit runs');
    expect(node.run('ps', '-o', 'args=', '-p', pid())).toBe(
      phase === 'committed' ? '/bin/sleep 4000' : '/bin/sleep 2000',
    );
    expect(await untilReason('', phase === 'committed' ? 'applied' : 'failed')).toMatchObject({ restored: true });
  });

  test('removes everything when it is deleted', async () => {
    expect(await ended(await publish({ delete: [{ kind: 'SystemdUnit', name: 'demo' }] }))).toMatchObject({
      phase: 'committed',
    });
    expect([
      node.unit(DEMO, 'LoadState'),
      node.unit(DEMO, 'ActiveState'),
      node.run('find', '/etc/systemd/system', '-name', 'demo.service*'),
    ]).toEqual(['not-found', 'inactive', '']);
  });
});
