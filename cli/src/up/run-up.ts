import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import {
  CONNECTION_SETTINGS,
  freePort,
  prepareNatsServer,
  PROCESSES,
  Supervisor,
  waitForNatsServer,
  type ChildSpec,
} from '#libs/process';
import { packageRoot } from '../package-root.js';
import { awaitLeftovers, takeDataFolder, type DataFolder } from './data-folder.js';
import { shardsFor, type InventoryNode } from './inventory.js';

export interface UpOptions {
  readonly data: string;
  /** 0: a free one. */
  readonly port: number;
  readonly nodes: readonly InventoryNode[];
  /** Whether drain and inventory work with Kubernetes, and the gateway runs. */
  readonly kubernetes: boolean;
  /** Targets elsewhere, which an applier here serves. */
  readonly targets?: LocalTargets;
  readonly say: (text: string) => void;
  /** Gives up waiting until everything answers. */
  readonly signal: AbortSignal;
}

export interface LocalTargets {
  readonly kind: 'functions' | 'clusters';
  /** The file that lists them. */
  readonly inventory: string;
  readonly names: readonly string[];
}

/** Everything of one local installation, running. */
export interface RunningInstallation {
  readonly url: string;
  readonly data: string;
  /** What did not answer in time; empty if all is well. */
  readonly missing: readonly string[];
  /** Stops everything within 10 s and keeps the data. */
  stop(): Promise<void>;
}

interface Variables {
  readonly variable: string;
  readonly orVariable?: string;
}

const READY_MS = 30_000;
/** Everybody is near, so a target is known to be silent soon. */
const WITH_TARGETS = { SLUICE_SILENT_SECONDS: '4' };
const WITH_KUBERNETES = { SLUICE_DRAIN: 'kubernetes', SLUICE_INVENTORY: 'kubernetes' };

/** The services that run here. */
export const servicesOf = (kubernetes: boolean): readonly string[] =>
  kubernetes ? [...SERVICES, ...EDGE_SERVICES] : SERVICES;

/** Starts nats-server, the services and the appliers, and restarts each process that ends. Resolves when all answer. */
export async function startUp(options: UpOptions): Promise<RunningInstallation> {
  const folder = takeDataFolder(options.data);
  let state: { readonly server: string } | undefined;
  const write = (): void => {
    if (state !== undefined) folder.write({ server: state.server, pid: process.pid, pids: supervisor.pids });
  };
  const supervisor = new Supervisor({
    onChange: write,
    onDeath: (name, how, againInMs) =>
      options.say(
        `${name} exited (${how}) and restarts in ${againInMs / 1_000} s; its log is ${join(folder.logs, `${name}.log`)}`,
      ),
  });
  const stop = async (): Promise<void> => {
    state = undefined;
    await supervisor.stop();
    folder.release();
  };
  try {
    await awaitLeftovers(folder.leftPids, folder.path);
    const url = await startServer(options.port, folder, supervisor);
    startProcesses(url, options, folder, supervisor);
    const missing = await whatIsMissing(url, options);
    state = { server: url };
    write();
    return { url, data: folder.path, missing, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startServer(port: number, folder: DataFolder, supervisor: Supervisor): Promise<string> {
  await freePort(port).catch((error: unknown) => {
    throw new Error(
      `port ${port} is already in use: stop the program that uses it, or choose another port with --port (0: any free port)`,
      { cause: error },
    );
  });
  const server = await prepareNatsServer({ dataDir: folder.nats, port });
  const logFile = join(folder.logs, 'nats-server.log');
  supervisor.add({ name: 'nats-server', command: server.command, args: server.args, logFile, endsLast: true });
  try {
    await waitForNatsServer(server, () => true, 15_000);
  } catch (error) {
    throw new Error(`${(error as Error).message}; the last lines of ${logFile}:\n${lastLines(logFile)}`, {
      cause: error,
    });
  }
  return server.url;
}

function startProcesses(
  url: string,
  { nodes, kubernetes, targets }: UpOptions,
  folder: DataFolder,
  supervisor: Supervisor,
): void {
  writeFileSync(folder.inventory, `${JSON.stringify({ nodes }, null, 1)}\n`);
  // This server has no credentials, so the user's credentials for another server are not used.
  const own = { ...process.env };
  for (const { variable, orVariable = variable } of Object.values<Variables>(CONNECTION_SETTINGS))
    for (const name of [variable, orVariable]) delete own[name];
  const child = (name: string, args: readonly string[]): ChildSpec => ({
    name,
    command: process.execPath,
    args: [join(packageRoot(), 'bin', 'sluice'), ...args],
    env: {
      ...own,
      ...(kubernetes ? WITH_KUBERNETES : {}),
      ...(targets === undefined ? {} : WITH_TARGETS),
      NATS_URL: url,
    },
    logFile: join(folder.logs, `${name}.log`),
  });
  for (const services of kubernetes ? [...PROCESSES, EDGE_SERVICES] : PROCESSES)
    supervisor.add(child(services.join('+'), ['service', ...services]));
  if (targets !== undefined) {
    const soon = ['--heartbeat-seconds', '1', '--check-seconds', '1'];
    const of = ['--targets', targets.kind, '--inventory', targets.inventory, '--state', folder.path, ...soon];
    supervisor.add(child(`applier-of-${targets.kind}`, ['applier', ...of]));
  }
  const shards = shardsFor(nodes.length, availableParallelism());
  for (const [at, shard] of shards.entries()) {
    const name = shards.length === 1 ? 'appliers' : `appliers-${at + 1}`;
    supervisor.add(child(name, ['appliers', '--inventory', folder.inventory, '--data', folder.path, '--shard', shard]));
  }
}

/**
 * Waits until every service answers and every node is known. Names the log of everything that is still missing then.
 */
async function whatIsMissing(
  url: string,
  { nodes, kubernetes, targets, signal }: UpOptions,
): Promise<readonly string[]> {
  const fleet = await connectFleet({ servers: [url], timeoutMs: 5_000 });
  const names = [...nodes.map(({ name }) => name), ...(targets?.names ?? [])];
  const untilMs = performance.now() + READY_MS + nodes.length * 5;
  try {
    for (;;) {
      const missing = await look(fleet, names, servicesOf(kubernetes));
      if (missing.length === 0 || signal.aborted || performance.now() > untilMs) return missing;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  } finally {
    await fleet.close();
  }
}

async function look(
  fleet: FleetClient,
  nodes: readonly string[],
  names: readonly string[],
): Promise<readonly string[]> {
  const facts = await fleet.inspect().catch(() => undefined);
  const services = names.filter(
    (name) => !facts?.services.some((service) => service.name === name && service.copies > 0),
  );
  if (services.length > 0) return services;
  const ready = await fleet.reportingNodes().catch(() => new Set());
  const silent = nodes.filter((name) => !ready.has(name));
  return silent.length === 0 ? [] : [`${silent.length} of ${nodes.length} nodes`];
}

function lastLines(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').slice(-5).join('\n') : '';
}
