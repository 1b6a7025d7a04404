import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient, type FleetEvent } from '#libs/client';
import { SERVICES, type ChangeView, type ViewBucket, type ViewValues } from '#libs/contracts';
import { until, startNatsServer, type NatsServer } from '#libs/testing';
import { BudgetWitness, type WatchedPool } from './budget-witness.js';
import { Gate } from './gate.js';
import { pool } from './manifests.js';
import { NodeFolders, type Files } from './node-folders.js';
import { Processes, SLUICE } from './processes.js';

/** The server that a fleet is connected to. */
export interface RunningServer {
  /** Where to connect. Several URLs are separated by commas. */
  readonly url: string;
  /** Where nodes connect, if that differs. */
  readonly nodesUrl?: string;
  stop(): Promise<void>;
}

export interface FleetOptions {
  /** Nodes whose applier has a separate process. All others share processes. */
  readonly own?: readonly string[];
  /** The number of processes that the other appliers share. Default: 1, which is named `appliers`. */
  readonly groups?: number;
  /** The number of copies of each service. */
  readonly copies?: number;
  /** The maximum duration of a lease, in every pool. */
  readonly applyTimeout?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Environment of a single service, by its name. */
  readonly envOf?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The files that exist on every node before Sluice. */
  readonly originals?: Files;
  /** The numbers of nodes in the pools edge, core and rest. */
  readonly sizes?: readonly [edge: number, core: number, rest: number];
  /** A replacement for systemctl on the nodes that share a process. It runs in the root folder of the node. */
  readonly systemctl?: string;
}

export interface CommandOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How long a command may take on a busy machine. */
const COMMAND_MS = 120_000;
const BUDGETS = { edge: 2, core: 1, rest: '10%' } as const;

/** A fleet of real processes: nats-server, the five services, and the appliers of 40 nodes in three pools. */
export class Fleet<S extends RunningServer = NatsServer> {
  readonly folders: NodeFolders;
  readonly witness: BudgetWitness;
  readonly gate: Gate;
  readonly nodes: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly processes: Processes;
  /** The files on every node that Sluice did not create. */
  readonly originals: Files;
  private readonly systemctl: readonly string[];
  /** Whether the data is kept at the end, for a person to look at. */
  keepsData = process.env['SLUICE_E2E_KEEP'] !== undefined;

  private readonly envOf: FleetOptions['envOf'];

  constructor(
    readonly data: string,
    readonly server: S,
    readonly client: FleetClient,
    readonly pools: readonly WatchedPool[],
    options: FleetOptions,
  ) {
    this.folders = new NodeFolders(data);
    this.nodes = pools.flatMap((one) => one.nodes);
    this.originals = options.originals ?? {};
    this.envOf = options.envOf;
    this.systemctl = options.systemctl === undefined ? [] : ['--systemctl', options.systemctl];
    this.witness = new BudgetWitness(pools, (node) => this.folders.journal(node));
    this.gate = new Gate(this.folders, this.witness);
    this.env = { ...process.env, NATS_URL: server.url, NO_COLOR: '1', SLUICE_HEALTH_SECONDS: '0', ...options.env };
    this.processes = new Processes(data, this.env);
  }

  /** Whether the nodes have a replacement for systemd, whose units can be restarted by changes. */
  get hasUnits(): boolean {
    return this.systemctl.length > 0;
  }

  nodesOf(name: string): readonly string[] {
    return this.pools.find((one) => one.pool === name)?.nodes ?? [];
  }

  /** Publishes until it is acknowledged, as a tool must do. Returns the id of the change. */
  async publish(content: object | string): Promise<string> {
    const [body, id] = [typeof content === 'string' ? content : JSON.stringify(content), randomUUID()];
    return until(() => this.client.publishChange('e2e', body, id).catch(ifConnected), 'the change is published');
  }

  apply(...manifests: readonly object[]): Promise<string> {
    return this.publish({ apply: manifests });
  }

  /** The result of the change. If it was published twice, the result of the first. */
  async ended(change: string): Promise<ChangeView> {
    const view = await this.over(change);
    return view.duplicateOf === undefined ? view : this.over(view.duplicateOf);
  }

  private over(change: string): Promise<ChangeView> {
    return until(async () => {
      const view = await this.client.get('changes', change).catch(ifConnected);
      return view !== undefined && ['committed', 'rejected', 'ended'].includes(view.phase) ? view : undefined;
    }, `${change} has ended`);
  }

  /** Waits until a view of the change meets the condition. */
  when<B extends ViewBucket>(bucket: B, key: string, holds: (view: ViewValues[B]) => boolean): Promise<ViewValues[B]> {
    return until(async () => {
      const view = await this.client.get(bucket, key).catch(ifConnected);
      return view !== undefined && holds(view) ? view : undefined;
    }, `${bucket} ${key}`);
  }

  /**
   * Waits until a view contains these values. Two services may show what happens in one change, and one of them may lag
   * behind the other.
   */
  async shows<B extends ViewBucket>(bucket: B, key: string, values: object): Promise<void> {
    const matcher = expect.objectContaining(values) as { asymmetricMatch(view: unknown): boolean };
    await this.when(bucket, key, (view) => matcher.asymmetricMatch(view));
  }

  /** The messages of the streams with a subject, ordered by time. */
  async events(subject: string): Promise<readonly FleetEvent[]> {
    const found: FleetEvent[] = [];
    for await (const event of this.client.events({ subject, follow: false, signal: new AbortController().signal }))
      found.push(event);
    return found;
  }

  /** The files of every node, by its name. */
  files(): Readonly<Record<string, Files>> {
    return Object.fromEntries(this.nodes.map((node) => [node, this.folders.files(node)]));
  }

  /** The expected files of every node, in addition to those that existed before Sluice. */
  filesWith(filesOf: (node: string) => Files): Readonly<Record<string, Files>> {
    return Object.fromEntries(this.nodes.map((node) => [node, { ...this.originals, ...filesOf(node) }]));
  }

  cli(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.env });
  }

  startService(name: string): void {
    const service = name.replace(/-\d+$/, '');
    this.processes.start(name, ['service', service], { env: this.envOf?.[service] ?? {} });
  }

  /** Starts a process with the appliers of many nodes, whose names are in a file next to it. */
  startAppliers(name: string): void {
    const { nodesUrl } = this.server;
    this.processes.start(
      name,
      ['appliers', '--inventory', join(this.data, `${name}.json`), '--data', this.data, ...this.systemctl],
      { env: nodesUrl === undefined ? {} : { NATS_URL: nodesUrl } },
    );
  }

  startApplier(node: string, role: string, ...more: readonly string[]): void {
    mkdirSync(this.folders.root(node), { recursive: true });
    this.processes.start(node, [
      'applier',
      '--node',
      node,
      '--label',
      `role=${role}`,
      '--root',
      this.folders.root(node),
      '--state',
      this.folders.state(node),
      ...more,
    ]);
  }

  async close(): Promise<void> {
    this.witness.stop();
    await this.gate.close();
    await this.client.close().catch(() => undefined);
    await this.processes.stopAll();
    await this.server.stop();
    if (!this.keepsData) rmSync(this.data, { recursive: true, force: true });
  }
}

/** Starts a fleet on one nats-server. Resolves when its pools are committed and every node belongs to one. */
export const startFleet = (options: FleetOptions = {}): Promise<Fleet> =>
  startFleetOn((folder) => startNatsServer({ dataDir: folder }), options);

/** The same on any server or cluster. */
export async function startFleetOn<S extends RunningServer>(
  serve: (folder: string) => Promise<S>,
  options: FleetOptions = {},
): Promise<Fleet<S>> {
  const data = mkdtempSync(join(tmpdir(), 'sluice-e2e-'));
  const server = await serve(join(data, 'nats'));
  const client = await connectFleet({ servers: server.url.split(','), timeoutMs: 5_000 });
  const fleet = new Fleet(data, server, client, poolsOf(options.sizes ?? [10, 6, 24]), options);
  try {
    await fleet.gate.open();
    for (const node of fleet.nodes) fleet.folders.plant(node, fleet.originals);
    startAll(fleet, options);
    await until(async () => {
      const reported = await client.reportingNodes().catch(() => new Set());
      return reported.size === fleet.nodes.length;
    }, 'every node reports its config');
    const more = options.applyTimeout === undefined ? {} : { applyTimeout: options.applyTimeout };
    await fleet.ended(await fleet.apply(...Object.entries(BUDGETS).map(([role, budget]) => pool(role, budget, more))));
    for (const { pool: name, nodes, budget } of fleet.pools)
      await fleet.when('pools', name, (view) => view.members === nodes.length && view.budget === budget);
    fleet.witness.start();
    return fleet;
  } catch (error) {
    await fleet.close();
    throw error;
  }
}

/** A fleet for the tests in one file. */
export function fleetFixture(options: FleetOptions = {}): { readonly fleet: Fleet } {
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    fleet = await startFleet(options);
  });
  afterAll(async () => {
    await fleet?.close();
  });
  return {
    get fleet() {
      if (fleet === undefined) throw new Error('the fleet is there only while tests run');
      return fleet;
    },
  };
}

/** Runs a program until it ends, whatever its exit code. */
export function run(
  command: string,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly input?: string; readonly cwd?: string } = {},
): Promise<CommandOutput> {
  return new Promise((resolve) => {
    const child = execFile(
      command,
      [...args],
      { env: options.env, cwd: options.cwd, maxBuffer: 1 << 26, timeout: COMMAND_MS },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr }),
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input ?? '');
  });
}

function startAll(fleet: Fleet<RunningServer>, { own = [], copies = 1, groups = 1 }: FleetOptions): void {
  for (const service of SERVICES)
    for (let copy = 1; copy <= copies; copy += 1) fleet.startService(copy === 1 ? service : `${service}-${copy}`);
  const shared = fleet.nodes.filter((node) => !own.includes(node)).map((name) => ({ name, labels: labelsOf(name) }));
  for (let group = 1; group <= groups; group += 1) {
    const name = groups === 1 ? 'appliers' : `appliers-${group}`;
    writeFileSync(
      join(fleet.data, `${name}.json`),
      JSON.stringify({ nodes: shared.filter((_node, i) => (i % groups) + 1 === group) }),
    );
    fleet.startAppliers(name);
  }
  for (const node of own) fleet.startApplier(node, labelsOf(node).role);
}

function poolsOf(sizes: readonly [number, number, number]): readonly WatchedPool[] {
  return Object.entries(BUDGETS).map(([name, written], index) => {
    const count = sizes[index] as number;
    const budget = typeof written === 'number' ? written : Math.max(1, Math.floor(count / 10));
    return {
      pool: name,
      budget,
      nodes: Array.from({ length: count }, (_, i) => `${name}-${String(i + 1).padStart(2, '0')}.dc${(i % 2) + 1}`),
    };
  });
}

const labelsOf = (node: string): { readonly role: string } => ({ role: node.split('-')[0] as string });

/** While the server is away, there is no answer. Anything else is an error. */
function ifConnected(error: unknown): undefined {
  if (!/NoConnection|Timeout|NoResponders|Connection|Closed|Request|JetStream/i.test((error as Error).name))
    throw error;
  return undefined;
}
