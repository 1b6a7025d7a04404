import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectBus, ensureTopology, type Bus } from '#libs/nats';
import { desiredSubject, changeId, LEDGER, type FactType, type ServiceName } from '#libs/contracts';
import { freePort, PROCESSES } from '#libs/process';
import { startNatsServer, type NatsServer } from '#libs/testing';
import { DIST, temporaryFolder } from './folders.js';
import type { PartContext } from './part.js';
import { cpuMs, end, isRunning, start, until } from './processes.js';
import { sum } from './figures.js';

export interface PlaneOptions {
  /** The services in each process, and thus the number of copies. Default: as `sluice up` runs them. */
  readonly processes?: readonly (readonly ServiceName[])[];
  /** Servers that already run, with their stores. Several form a cluster. */
  readonly servers?: readonly NatsServer[];
  /** The number of copies of every stream. Default: one. */
  readonly replicas?: number;
  readonly env?: NodeJS.ProcessEnv;
}

/** A process of one or more services. */
export interface ServiceProcess {
  /** The names of its services, joined with a plus. */
  readonly name: string;
  readonly services: readonly ServiceName[];
  readonly child: ChildProcess;
  readonly pid: number;
  readonly logFile: string;
}

/** When each stage of a change was stored, by the server's clock, in milliseconds since 1970. */
export type Stations = Readonly<
  Record<'accepted' | 'rendered' | 'validated' | 'started' | 'complete' | 'committed' | 'succeeded', number>
>;

const STATIONS = {
  accepted: 'config.accepted',
  rendered: 'config.rendered',
  validated: 'config.validated',
  started: 'rollout.started',
  complete: 'rollout.complete',
  committed: 'config.committed',
  succeeded: 'rollout.succeeded',
} as const satisfies Readonly<Record<keyof Stations, FactType>>;

const QUIET_EVERY_MS = 700;
const QUIET_LOOKS = 3;

/** The whole control plane as real processes on loopback, with the settings of a user. */
export class ControlPlane {
  readonly services: ServiceProcess[] = [];

  private constructor(
    readonly servers: readonly NatsServer[],
    readonly bus: Bus,
    private readonly folder: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async start(context: PartContext, options: PlaneOptions = {}): Promise<ControlPlane> {
    const folder = temporaryFolder(context, 'plane');
    const servers = options.servers ?? [await startServer(context)];
    const urls = servers.map(({ url }) => url);
    const { replicas } = options;
    const bus = await connectBus({ servers: urls, name: 'bench' });
    context.atEnd(() => bus.close());
    await ensureTopology(bus, { replicas });
    mkdirSync(join(folder, 'logs'));
    const plane = new ControlPlane(servers, bus, folder, {
      ...process.env,
      ...(replicas === undefined ? {} : { SLUICE_REPLICAS: String(replicas) }),
      ...options.env,
      NATS_URL: urls.join(','),
    });
    context.atEnd(() => plane.stopServices());
    for (const services of options.processes ?? PROCESSES) plane.startService(...services);
    await plane.untilLed();
    return plane;
  }

  /** Starts another process of these services. Its log goes to a file, as with `sluice up`. */
  startService(...services: readonly ServiceName[]): ServiceProcess {
    const name = services.join('+');
    const logFile = join(this.folder, 'logs', `${name}-${this.services.length}.log`);
    const log = openSync(logFile, 'a');
    const extra = (process.env['SLUICE_BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
    const child = start(process.execPath, [...extra, join(DIST, 'cli', 'src', 'main.js'), 'service', ...services], {
      env: this.env,
      stdio: ['ignore', log, log],
      cwd: this.folder,
    });
    closeSync(log);
    const service = { name, services, child, pid: child.pid as number, logFile };
    this.services.push(service);
    return service;
  }

  /** The first of the servers. */
  get server(): NatsServer {
    return this.servers[0] as NatsServer;
  }

  get urls(): readonly string[] {
    return this.servers.map(({ url }) => url);
  }

  get pids(): readonly number[] {
    return [
      ...this.servers.map(({ pid }) => pid),
      ...this.services.filter(({ child }) => isRunning(child)).map(({ pid }) => pid),
    ];
  }

  /** The CPU time so far of everything that belongs to the control plane. */
  cpuMs(): number {
    return sum(this.pids.map(cpuMs));
  }

  /** By process, in milliseconds. */
  cpuByName(): Readonly<Record<string, number>> {
    const rows = this.services
      .filter(({ child }) => isRunning(child))
      .map(({ name, pid }) => [name, cpuMs(pid)] as const);
    return Object.fromEntries([['nats-server', sum(this.servers.map(({ pid }) => cpuMs(pid)))], ...rows]);
  }

  async stopServices(): Promise<void> {
    await Promise.all(this.services.map(({ child }) => end(child)));
  }

  /** Resolves when each service has a copy that leads and has recorded that. */
  async untilLed(timeoutMs = 120_000): Promise<void> {
    const wanted = new Set<string>(this.services.flatMap(({ services }) => services));
    const led = new Set<string>();
    const inbox = `bench.ping.${process.pid}.${Math.random().toString(36).slice(2)}`;
    const subscription = this.bus.nc.subscribe(inbox, {
      callback: (_error, message) => {
        // Nothing listens yet. The answer is from the server itself.
        if (message.data.length === 0) return;
        const { name, metadata } = message.json<{ name: string; metadata?: Record<string, string> }>();
        if (metadata?.['leader'] === 'true') led.add(name);
      },
    });
    const look = (): true | undefined => {
      this.bus.nc.publish('$SRV.PING', '', { reply: inbox });
      this.checkAlive();
      return [...wanted].every((name) => led.has(name)) ? true : undefined;
    };
    try {
      await until(`a leader of each of ${[...wanted].join(', ')}`, look, timeoutMs, 20);
    } finally {
      subscription.unsubscribe();
    }
  }

  /** Throws if a service has ended that should run, with the end of its log. */
  checkAlive(): void {
    for (const { name, child, logFile } of this.services) {
      if (isRunning(child) || child.signalCode === 'SIGKILL') continue;
      throw new Error(
        `${name} ended (${child.exitCode ?? child.signalCode}): ${readFileSync(logFile, 'utf8').trim().split('\n').slice(-3).join('\n')}`,
      );
    }
  }

  /** Publishes a change. Returns its id. */
  async publish(apply: readonly object[]): Promise<string> {
    return changeId(
      (
        await this.bus.publish(
          desiredSubject('bench'),
          JSON.stringify({ apply, delete: [], message: 'bench', author: 'bench', strategy: { maxFailures: 0 } }),
        )
      ).seq,
    );
  }

  /** Publishes a change and waits until it has succeeded. */
  async rollOut(
    apply: readonly object[],
    timeoutMs = 600_000,
  ): Promise<{ readonly change: string; readonly at: Stations }> {
    const change = await this.publish(apply);
    await this.untilFact('rollout.succeeded', change, timeoutMs);
    return { change, at: await this.stations(change) };
  }

  /** Waits for a fact about a change. Throws if the change was rejected or rolled back. */
  async untilFact(type: FactType, change: string, timeoutMs = 600_000): Promise<number> {
    const look = async (): Promise<number | undefined> => {
      const found = await this.timeOf(`${type}.${change}`);
      if (found !== undefined) return found;
      for (const bad of ['config.rejected', 'rollout.failed', 'config.ended']) {
        const message = await this.bus.stored(LEDGER, { last_by_subj: `${bad}.${change}` });
        if (message !== null) throw new Error(`${change}: ${bad}: ${message.string().slice(0, 1_000)}`);
      }
      this.checkAlive();
      return undefined;
    };
    return until(`${type}.${change}`, look, timeoutMs, 100);
  }

  private async timeOf(subject: string): Promise<number | undefined> {
    const message = await this.bus.stored(LEDGER, { last_by_subj: subject });
    return message === null ? undefined : millisecondsOf(message.timestamp);
  }

  private async stations(change: string): Promise<Stations> {
    const rows = await Promise.all(
      Object.entries(STATIONS).map(
        async ([name, type]) => [name, (await this.timeOf(`${type}.${change}`)) ?? Number.NaN] as const,
      ),
    );
    return Object.fromEntries(rows) as unknown as Stations;
  }

  /** Resolves when nothing has been stored for a while. Heartbeats continue. */
  async untilQuiet(timeoutMs = 300_000): Promise<void> {
    let [last, same] = [-1, 0];
    const look = async (): Promise<true | undefined> => {
      const { storage } = await this.bus.jsm.getAccountInfo();
      same = storage === last ? same + 1 : 0;
      last = storage;
      return same >= QUIET_LOOKS ? true : undefined;
    };
    await until('quiet', look, timeoutMs, QUIET_EVERY_MS);
  }
}

/** A nats-server with an empty store. It is stopped and deleted at the end of the part. */
export async function startServer(context: PartContext): Promise<NatsServer> {
  const server = await startNatsServer({ dataDir: temporaryFolder(context, 'nats') });
  context.atEnd(() => server.stop());
  return server;
}

/** Three connected servers. They are stopped and deleted at the end of the part. */
export async function startCluster(context: PartContext): Promise<readonly NatsServer[]> {
  const ports = await Promise.all([0, 1, 2].map(freePort));
  const config = (port: number): string =>
    `cluster { name: bench, listen: "127.0.0.1:${port}", routes: [${ports.map((other) => `"nats://127.0.0.1:${other}"`).join(', ')}] }`;
  const servers = await Promise.all(
    ports.map((port) => startNatsServer({ dataDir: temporaryFolder(context, 'nats'), config: config(port) })),
  );
  for (const server of servers) context.atEnd(() => server.stop());
  return servers;
}

/** The server's time, including fractions of a millisecond. */
export function millisecondsOf(time: string): number {
  const fraction = /\.(\d+)Z$/.exec(time)?.[1] ?? '0';
  return Date.parse(time.replace(/\.\d+Z$/, 'Z')) + Number(`0.${fraction}`) * 1000;
}
