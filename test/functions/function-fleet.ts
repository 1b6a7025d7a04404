import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type ChangeView } from '#libs/contracts';
import { startNatsServer, TcpProxy, until, type NatsServer } from '#libs/testing';
import { run, type CommandOutput } from '../e2e/fleet.js';
import { Processes, SLUICE } from '../e2e/processes.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

/** A replica of a network function: a stand-in behind a proxy, so that it can be cut off and keep running. */
export class Replica {
  private constructor(
    readonly name: string,
    readonly proxy: TcpProxy,
    private readonly port: number,
    public standIn: FunctionStandIn,
  ) {}

  static async start(name: string): Promise<Replica> {
    const standIn = await FunctionStandIn.start({ password: 'secret' });
    const port = Number(new URL(standIn.baseUrl).port);
    return new Replica(name, await TcpProxy.to(port), port, standIn);
  }

  /** Everything that it has, as `Kind path/name`, including doubles. */
  get objects(): readonly string[] {
    return ['mwan3/v1/policies', 'mwan3/v1/rules', 'firewall/v1/zones', 'firewall/v1/rules']
      .flatMap((path) =>
        this.standIn.config.list(path).map((object) => `${path.split('/')[2]}/${String(object['name'])}`),
      )
      .sort();
  }

  object(path: string, name: string): Readonly<Record<string, unknown>> | undefined {
    return this.standIn.config.list(path).find((object) => object['name'] === name);
  }

  /** It is gone, and what it had is lost. */
  async stop(): Promise<void> {
    await this.standIn.close();
  }

  /** A new one at the same address, with an empty config. */
  async startEmpty(): Promise<void> {
    this.standIn = await FunctionStandIn.start({ password: 'secret', port: this.port });
  }

  async close(): Promise<void> {
    await this.proxy.cut();
    await this.standIn.close();
  }
}

/** Replicas of a network function, nats-server, the services, and copies of the applier that serves the replicas. */
export class FunctionFleet {
  private constructor(
    private readonly folder: string,
    readonly server: NatsServer,
    readonly client: FleetClient,
    readonly processes: Processes,
    readonly env: NodeJS.ProcessEnv,
    readonly replicas: readonly Replica[],
  ) {}

  static async start(names: readonly string[], settings: NodeJS.ProcessEnv = {}): Promise<FunctionFleet> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-functions-'));
    mkdirSync(join(folder, 'logs'));
    const [server, replicas] = await Promise.all([
      startNatsServer(),
      Promise.all(names.map((name) => Replica.start(name))),
    ]);
    const own = { NATS_URL: server.url, NO_COLOR: '1', USER: 'somebody', SLUICE_SILENT_SECONDS: '4' };
    const env = { ...process.env, ...own, ...settings };
    const processes = new Processes(join(folder, 'logs'), env);
    writeFileSync(join(folder, 'password'), 'secret\n');
    const entries = replicas.map(({ name, proxy }) => ({
      name,
      url: `http://127.0.0.1:${proxy.port}`,
      labels: { purpose: 'edge' },
      passwordFile: 'password',
    }));
    writeFileSync(join(folder, 'functions.yaml'), JSON.stringify({ functions: entries }));
    const fleet = new FunctionFleet(
      folder,
      server,
      await connectFleet({ servers: [server.url] }),
      processes,
      env,
      replicas,
    );
    fleet.startServices();
    fleet.startApplier('applier');
    // Until the services have started, there is nothing to read.
    const nodes = async (): Promise<number> => (await fleet.client.list('nodes').catch(() => new Map())).size;
    await until(async () => (await nodes()) === names.length, 'all replicas have joined');
    return fleet;
  }

  startServices(): void {
    this.processes.start('services', ['service', ...SERVICES]);
  }

  startApplier(name: string): void {
    const flags = ['--inventory', join(this.folder, 'functions.yaml'), '--state', join(this.folder, name)];
    this.processes.start(name, [
      'applier',
      '--targets',
      'functions',
      ...flags,
      '--heartbeat-seconds',
      '1',
      '--check-seconds',
      '1',
    ]);
  }

  run(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.env, cwd: this.folder });
  }

  /** Publishes fragments, and deletes those with `delete: true`, as one change. Returns its ID. */
  async apply(...manifests: readonly object[]): Promise<string> {
    const file = join(this.folder, 'change.yaml');
    writeFileSync(file, manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    const { stdout, stderr, code } = await this.run('apply', '-f', file);
    if (code !== 0) throw new Error(`apply: exit code ${code}: ${stderr}`);
    return stdout.trim();
  }

  /** What the bucket `fragments` shows of each fragment, by `Kind/name`. */
  async fragments(): Promise<Readonly<Record<string, string>>> {
    const views = await this.client.list('fragments');
    const rows = [...views.values()]
      .filter(({ counts, gone, removing }) => counts !== undefined && (!gone || removing))
      .map(({ fragment, counts, removing, stillOn }): [string, string] => [
        `${fragment?.kind}/${fragment?.name}`,
        removing ? `removing, still on ${stillOn.join(', ')}` : `${counts?.upToDate}/${counts?.nodes}`,
      ]);
    return Object.fromEntries(rows.sort(([one], [other]) => one.localeCompare(other)));
  }

  async ended(change: string): Promise<ChangeView> {
    return until(async () => {
      const view = (await this.client.list('changes')).get(change);
      return view?.endedAt === '' ? undefined : view;
    }, `${change} ends`);
  }

  async close(): Promise<void> {
    await this.processes.stopAll();
    await this.client.close();
    await Promise.all(this.replicas.map((replica) => replica.close()));
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
