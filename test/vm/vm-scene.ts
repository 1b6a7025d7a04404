import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type ChangeView, type StatusView } from '#libs/contracts';
import {
  findVmImage,
  HOST_IN_GUEST,
  restoreVm,
  until,
  type VirtualMachine,
  startNatsServer,
  type NatsServer,
} from '#libs/testing';
import { manifest, type Manifest } from '../e2e/manifests.js';
import { Processes, ROOT } from '../e2e/processes.js';
import { PausePoints } from './pause-points.js';

export const NODE = 'vm-1.dc1';
/** Two restarts on a machine that is very busy. */
const WAIT_MS = 800_000;
/**
 * On the single emulated processor, a look costs as much as a step of the applier. A look at the bus only costs the
 * host.
 */
const LOOK_MS = 1_000;
const ASK_MS = 100;
const SETTINGS = '/etc/default/sluice-applier';

export const everywhere = (kind: string, name: string, spec: object): Manifest =>
  manifest(kind, name, { nodeSelector: {}, ...spec });
export const vmFile = (name: string, content: string, more: object = {}): Manifest =>
  everywhere('File', name, { path: `/etc/${name}`, content, ...more });

export const DEMO = 'demo.service';
/** A unit that runs for this many seconds, as `argumentOf` shows. */
export const demo = (
  seconds: number,
  content = `[Service]\nExecStart=/bin/sleep ${seconds}\n[Install]\nWantedBy=multi-user.target\n`,
): Manifest => everywhere('SystemdUnit', 'demo', { name: DEMO, content, enabled: true, state: 'started' });

/**
 * The services and a server on this host, and one node in a VM, on which the applier was installed from its Debian
 * package.
 */
export class VmScene {
  private readonly data = mkdtempSync(join(tmpdir(), 'sluice-vm-'));
  private readonly points = new PausePoints();
  private server!: NatsServer;
  private processes!: Processes;
  client!: FleetClient;
  vm!: VirtualMachine;

  async open(): Promise<void> {
    const restored = findVmImage().then((image) => restoreVm(image, join(this.data, 'vm')));
    execFileSync(process.execPath, [join(ROOT, 'tools/package.cjs'), '--out', this.data], { cwd: ROOT, stdio: 'pipe' });
    this.server = await startNatsServer({ dataDir: join(this.data, 'nats') });
    this.client = await connectFleet({ servers: [this.server.url], timeoutMs: 10_000 });
    this.processes = new Processes(this.data, {
      ...process.env,
      NATS_URL: this.server.url,
      SLUICE_HEALTH_SECONDS: '0',
    });
    for (const service of SERVICES) this.processes.start(service, ['service', service]);
    await this.points.listen();
    this.vm = await restored;
    await this.install();
    await until(
      async () => {
        const [joined, status] = await Promise.all([
          this.client.get('nodes', NODE),
          this.client.get('status', NODE),
        ]).catch(() => []);
        return joined !== undefined && status !== undefined && status.desired !== '' && status.desired === status.hash;
      },
      'the node has joined',
      WAIT_MS,
      ASK_MS,
    ).catch((error: unknown) => this.explain(error));
    // Everything is slow there.
    await this.commit(everywhere('Pool', 'all', { applyTimeout: '600s' }));
  }

  /** As a person would do it: the package, its settings, and the drop-ins of the backends that the node needs. */
  private async install(): Promise<void> {
    const deb = readdirSync(this.data).find((name) => name.endsWith('.deb')) ?? '';
    await this.vm.put('/tmp/sluice-applier.deb', readFileSync(join(this.data, deb)));
    await this.vm.run(
      'set -e; dpkg -i /tmp/sluice-applier.deb; install -Dm644 -t /etc/systemd/system/sluice-applier.service.d /usr/share/sluice/backends/*.conf; mkdir /opt/rig',
    );
    for (const name of ['pauses.cjs', 'pausing-systemctl'])
      await this.vm.put(`/opt/rig/${name}`, readFileSync(join(ROOT, 'test/vm/guest', name)));
    const settings = {
      NATS_URL: `nats://${HOST_IN_GUEST}:${new URL(this.server.url).port}`,
      SLUICE_NODE: NODE,
      NODE_OPTIONS: '--require=/opt/rig/pauses.cjs',
      SLUICE_SYSTEMCTL: '/opt/rig/pausing-systemctl',
      RIG_PAUSES: `${HOST_IN_GUEST} ${this.points.port}`,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}="${value}"\n`);
    await this.vm.put(SETTINGS, lines.join(''));
    // This also makes systemd reload its configuration.
    await this.vm.run(
      'set -e; chmod 755 /opt/rig/pausing-systemctl; sync; systemctl enable --now sluice-applier.service',
    );
  }

  publish(body: object): Promise<string> {
    return this.client.publishChange('vm', JSON.stringify(body));
  }

  ended(change: string): Promise<ChangeView> {
    const isOver = (view: ChangeView | undefined): ChangeView | undefined =>
      view !== undefined && ['committed', 'rejected', 'ended'].includes(view.phase) ? view : undefined;
    return until(
      async () => isOver(await this.client.get('changes', change)),
      `${change} has ended`,
      WAIT_MS,
      ASK_MS,
    ).catch((error: unknown) => this.explain(error));
  }

  /** Publishes to a node that is present and idle. */
  async apply(...manifests: readonly Manifest[]): Promise<ChangeView> {
    await this.quiet();
    return this.ended(await this.publish({ apply: manifests }));
  }

  /** The same for a change that must succeed. On failure, shows the log of the applier. */
  async commit(...manifests: readonly Manifest[]): Promise<void> {
    const { phase, outcome, reasons } = await this.apply(...manifests);
    if (phase !== 'committed')
      await this.explain(
        new Error(
          `the change is ${phase} ${outcome}: ${JSON.stringify(reasons)} ${(await this.client.get('status', NODE))?.reason ?? ''}`,
        ),
      );
  }

  async delete(...manifests: readonly Manifest[]): Promise<ChangeView> {
    await this.quiet();
    return this.ended(
      await this.publish({ delete: manifests.map(({ kind, metadata: { name } }) => ({ kind, name })) }),
    );
  }

  /** Views are written one after another: the end of a change may be visible before the report of the node. */
  untilReason(reason: string, verdict: StatusView['verdict']): Promise<StatusView> {
    return until(
      async () => {
        const status = await this.client.get('status', NODE);
        return status?.reason.includes(reason) === true && status.verdict === verdict ? status : undefined;
      },
      `the node says ${verdict}: ${reason}`,
      WAIT_MS,
      ASK_MS,
    ).catch((error: unknown) => this.explain(error));
  }

  /**
   * Waits until nothing is left to do on the node, it has reported that, and it does not count as silent. Otherwise, a
   * change would not reach it.
   */
  quiet(): Promise<StatusView> {
    return until(
      async () => {
        const [status, node] = await Promise.all([this.client.get('status', NODE), this.client.get('nodes', NODE)]);
        return status !== undefined &&
          node?.state === 'ready' &&
          status.restored &&
          status.desired === status.hash &&
          status.deferred === ''
          ? status
          : undefined;
      },
      'the node is up to date',
      WAIT_MS,
      ASK_MS,
    ).catch((error: unknown) => this.explain(error));
  }

  /** Waits until a condition holds in the VM. */
  comes<T>(condition: () => Promise<T>, what: string, giveUpMs = WAIT_MS): Promise<NonNullable<T>> {
    return until(condition, what, giveUpMs, LOOK_MS).catch((error: unknown) => this.explain(error));
  }

  bootId(): Promise<string> {
    return this.vm.run('cat /proc/sys/kernel/random/boot_id');
  }

  /**
   * Rules, routes and addresses, without those that the kernel adds on its own, and without the lifetime of the route
   * that qemu's router has announced.
   */
  network(): Promise<string> {
    return this.vm.run(
      'ip rule; ip route show table all | grep -v "^local\\|^broadcast\\|^ff00\\|fe80" | sed "s/ expires [0-9]*sec//" | sort; ip -br address | sort',
    );
  }

  /** A property of a unit, according to systemd. */
  unit(name: string, property: string): Promise<string> {
    return this.vm.run(`systemctl show --value --property=${property} ${name}`);
  }

  /** A command that prints the last argument of the program that the unit runs. */
  argumentOf(unit: string): string {
    return `ps -o args= -p $(systemctl show --value --property=MainPID ${unit}) | grep -o '[^ ]*$'`;
  }

  /** The applier's journal on the disk. */
  async journal(): Promise<{
    readonly work?: { readonly phase: string };
    readonly lastDealt?: { readonly reason: string };
  }> {
    return (
      JSON.parse(await this.vm.run('cat /var/lib/sluice/journal.json')) as {
        journal: Awaited<ReturnType<VmScene['journal']>>;
      }
    ).journal;
  }

  /** Holds the applier at chosen points. See `PausePoints`. */
  get pauses(): PausePoints {
    return this.points;
  }

  async cutAndBoot(): Promise<void> {
    await this.vm.cut();
    this.points.clear();
    this.vm.start();
    await this.vm.up();
  }

  private async explain(error: unknown): Promise<never> {
    const log = await this.vm
      .run('journalctl --no-pager -o cat -n 25 -u sluice-applier', 30_000)
      .catch((reason: unknown) => `the VM does not answer: ${(reason as Error).message}`);
    throw new Error(`${(error as Error).message}\n${log}`, { cause: error });
  }

  async close(): Promise<void> {
    await this.vm?.close();
    this.points.close();
    await this.client?.close();
    await this.processes?.stopAll();
    await this.server?.stop();
    if (process.env['SLUICE_E2E_KEEP'] === undefined) rmSync(this.data, { recursive: true, force: true });
  }
}
