import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type ChangeView } from '#libs/contracts';
import { startNatsServer, TcpProxy, until, type LeanCluster, type NatsServer } from '#libs/testing';
import { run, type CommandOutput } from '../e2e/fleet.js';
import { Processes, SLUICE } from '../e2e/processes.js';

/** A cluster behind a proxy, so that it can be cut off and keep running. */
export interface FleetCluster {
  readonly name: string;
  readonly cluster: LeanCluster;
  readonly proxy: TcpProxy;
}

/** nats-server, the services, and copies of the applier that serves the clusters. */
export class ClusterFleet {
  private constructor(
    readonly folder: string,
    readonly server: NatsServer,
    readonly client: FleetClient,
    readonly processes: Processes,
    private readonly env: NodeJS.ProcessEnv,
    readonly clusters: readonly FleetCluster[],
  ) {}

  static async start(
    all: readonly LeanCluster[],
    { startApplier = true, services = SERVICES as readonly string[], names = [] as readonly string[] } = {},
  ): Promise<ClusterFleet> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-clusters-'));
    mkdirSync(join(folder, 'logs'));
    const server = await startNatsServer();
    const clusters = await Promise.all(
      all.map(async (cluster, i) => ({
        name: names[i] ?? `c-${i + 1}`,
        cluster,
        proxy: await TcpProxy.to(cluster.port),
      })),
    );
    const env = { ...process.env, NATS_URL: server.url, NO_COLOR: '1', USER: 'somebody', SLUICE_SILENT_SECONDS: '4' };
    const processes = new Processes(join(folder, 'logs'), env);
    for (const { name, cluster, proxy } of clusters)
      writeFileSync(
        join(folder, `${name}.kubeconfig`),
        cluster.kubeconfig({ server: `https://127.0.0.1:${proxy.port}` }),
      );
    const client = await connectFleet({ servers: [server.url] });
    const fleet = new ClusterFleet(folder, server, client, processes, env, clusters);
    fleet.writeInventory(clusters.map(({ name }) => name));
    processes.start('services', ['service', ...services]);
    if (startApplier) fleet.startApplier('applier');
    const nodes = async (): Promise<number> => (await client.list('nodes').catch(() => new Map())).size;
    if (startApplier) await until(async () => (await nodes()) === clusters.length, 'all clusters have joined');
    return fleet;
  }

  /** With a suffix, it has other kubeconfigs than the usual ones. */
  writeInventory(names: readonly string[], { file = 'clusters.yaml', suffix = '' } = {}): void {
    const entries = names.map((name) => ({
      name,
      labels: { kind: 'cluster', name },
      kubeconfigFile: `${name}${suffix}.kubeconfig`,
    }));
    writeFileSync(join(this.folder, file), JSON.stringify({ clusters: entries }));
  }

  /** As a person would: the new file takes the place of the old one. */
  replaceKubeconfig(name: string, kubeconfig: string): void {
    const file = join(this.folder, `${name}.kubeconfig`);
    writeFileSync(`${file}.new`, kubeconfig);
    renameSync(`${file}.new`, file);
  }

  /** What a process has logged. */
  log(name: string): string {
    return readFileSync(join(this.folder, 'logs', `${name}.log`), 'utf8');
  }

  startApplier(name: string, inventory = 'clusters.yaml'): void {
    const flags = ['--inventory', join(this.folder, inventory), '--state', join(this.folder, name)];
    const intervals = ['--heartbeat-seconds', '1', '--check-seconds', '1'];
    this.processes.start(name, ['applier', '--targets', 'clusters', ...flags, ...intervals]);
  }

  run(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.env, cwd: this.folder });
  }

  /** Publishes manifests as one change. Returns its ID. */
  async apply(...manifests: readonly object[]): Promise<string> {
    const file = join(this.folder, 'change.yaml');
    writeFileSync(file, manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    const { stdout, stderr, code } = await this.run('apply', '-f', file);
    if (code !== 0) throw new Error(`apply: exit code ${code}: ${stderr}`);
    return stdout.trim();
  }

  async ended(change: string): Promise<ChangeView> {
    return until(async () => {
      const view = (await this.client.list('changes')).get(change);
      return view === undefined || view.endedAt === '' ? undefined : view;
    }, `${change} ends`);
  }

  async close(): Promise<void> {
    await this.processes.stopAll();
    await this.client.close();
    await Promise.all(this.clusters.map(({ proxy }) => proxy.cut()));
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
