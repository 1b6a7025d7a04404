import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type ChangeView } from '#libs/contracts';
import { startNatsServer, TcpProxy, until, type NatsServer } from '#libs/testing';
import { run, type CommandOutput } from '../e2e/fleet.js';
import { NodeFolders } from '../e2e/node-folders.js';
import { Processes, SLUICE } from '../e2e/processes.js';

interface Parts {
  readonly name: string;
  readonly folder: string;
  readonly server: NatsServer;
  readonly proxy: TcpProxy;
  readonly client: FleetClient;
  readonly processes: Processes;
  readonly env: NodeJS.ProcessEnv;
  readonly nodes: readonly string[];
}

interface ServerOptions {
  /** More lines for the config of its nats-server. */
  readonly config?: string;
  readonly user?: string;
  readonly password?: string;
}

/** A whole Sluice: nats-server behind a proxy, the services, and the appliers of its nodes. */
export class Installation {
  readonly folders: NodeFolders;

  private constructor(private readonly parts: Parts) {
    this.folders = new NodeFolders(parts.folder);
  }

  get name(): string {
    return this.parts.name;
  }

  get folder(): string {
    return this.parts.folder;
  }

  /** Between this installation and a hub. */
  get proxy(): TcpProxy {
    return this.parts.proxy;
  }

  get client(): FleetClient {
    return this.parts.client;
  }

  get processes(): Processes {
    return this.parts.processes;
  }

  get nodes(): readonly string[] {
    return this.parts.nodes;
  }

  /** `silentSeconds`: how long a node may send no heartbeat. */
  static async start(
    name: string,
    nodeCount: number,
    silentSeconds: number,
    { config, ...login }: ServerOptions = {},
  ): Promise<Installation> {
    const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`));
    const server = await startNatsServer(config === undefined ? {} : { config });
    const { user, password } = login;
    const own = {
      ...{ NATS_URL: server.url, NO_COLOR: '1', USER: 'somebody', SLUICE_SILENT_SECONDS: String(silentSeconds) },
      ...(user === undefined ? {} : { NATS_USER: user, NATS_PASSWORD: password }),
    };
    const env = { ...process.env, ...own };
    const processes = new Processes(folder, env);
    const client = await connectFleet({ servers: [server.url], ...login });
    const nodes = Array.from({ length: nodeCount }, (_, i) => `${name}-${String(i + 1).padStart(2, '0')}`);
    const proxy = await TcpProxy.to(Number(new URL(server.url).port));
    const installation = new Installation({ name, folder, server, proxy, client, processes, env, nodes });
    processes.start('services', ['service', ...SERVICES]);
    if (nodeCount > 0) installation.startNodes();
    // Until the services have started, there is nothing to read.
    const known = async (): Promise<number> => (await client.reportingNodes().catch(() => new Set())).size;
    await until(async () => (await known()) === nodeCount, `all nodes of ${name} have joined`);
    await until(async () => (await client.missingServices()).length === 0, `the services of ${name} answer`);
    return installation;
  }

  startNodes(): void {
    mkdirSync(join(this.folder, 'nodes'), { recursive: true });
    const file = join(this.folder, 'nodes.json');
    const labels = (i: number): object => ({ role: i % 3 === 0 ? 'edge' : 'worker' });
    writeFileSync(file, JSON.stringify({ nodes: this.nodes.map((name, i) => ({ name, labels: labels(i) })) }));
    const flags = ['--inventory', file, '--data', this.folder, '--heartbeat-seconds', '1'];
    this.processes.start('appliers', ['appliers', ...flags]);
  }

  /** The URL for a hub. */
  get url(): string {
    return `nats://127.0.0.1:${this.proxy.port}`;
  }

  get ownUrl(): string {
    return this.parts.server.url;
  }

  run(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.parts.env, cwd: this.folder });
  }

  /** Publishes manifests as one change. Returns its id. */
  async apply(...manifests: readonly object[]): Promise<string> {
    const file = join(this.folder, 'change.yaml');
    writeFileSync(file, manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    const { stdout, stderr, code } = await this.run('apply', '-f', file);
    // 3: the review rejected it at once.
    if (code !== 0 && code !== 3) throw new Error(`apply: exit code ${code}: ${stdout}${stderr}`);
    return stdout.trim().split('\n')[0] as string;
  }

  async ended(change: string): Promise<ChangeView> {
    return until(async () => {
      const view = await this.client.get('changes', change);
      return view === undefined || view.endedAt === '' ? undefined : view;
    }, `${change} of ${this.name} ends`);
  }

  /** The content of a file on each node, without repetitions; `none` if a node does not have it. */
  contents(path: string): readonly string[] {
    return [...new Set(this.nodes.map((node) => this.folders.files(node)[path] ?? 'none'))].sort();
  }

  async close(): Promise<void> {
    await this.processes.stopAll();
    await this.client.close();
    await this.proxy.cut();
    await this.parts.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
