import { join } from 'node:path';
import { freePort } from '#libs/process';
import { TcpProxy, startNatsServer, type NatsServer } from '#libs/testing';
import type { RunningServer } from '../e2e/fleet.js';

const SIZE = 3;
/**
 * The address that a server advertises. Nothing listens there, so servers and clients use only the configured
 * addresses.
 */
const NOWHERE = '127.0.0.1:1';

/** Three nats-servers with routes between them that can be cut. Clients may be able to reach each. */
export class NatsCluster implements RunningServer {
  /** `ways[from][to]`. */
  private constructor(
    readonly servers: readonly NatsServer[],
    private readonly ways: readonly (readonly (TcpProxy | undefined)[])[],
  ) {}

  static async start(folder: string): Promise<NatsCluster> {
    const ports = await Promise.all(Array.from({ length: SIZE }, freePort));
    const ways = await Promise.all(
      ports.map((_port, from) => Promise.all(ports.map((port, to) => (from === to ? undefined : TcpProxy.to(port))))),
    );
    const servers = await Promise.all(
      ports.map((port, i) =>
        startNatsServer({ dataDir: join(folder, `${i + 1}`), config: clusterConfig(port, ways[i] ?? []) }),
      ),
    );
    return new NatsCluster(servers, ways);
  }

  get url(): string {
    return this.servers.map(({ url }) => url).join(',');
  }

  server(index: number): NatsServer {
    return this.servers[index] as NatsServer;
  }

  /** Cuts one server off from the others. Clients still reach it. */
  async cutOff(index: number): Promise<void> {
    await Promise.all(this.waysOf(index).map((way) => way.cut()));
  }

  async restore(): Promise<void> {
    await Promise.all(this.ways.flat().map((way) => way?.restore()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
    await Promise.all(this.ways.flat().map((way) => way?.cut()));
  }

  private waysOf(index: number): readonly TcpProxy[] {
    return this.ways
      .flatMap((row, from) => row.filter((_way, to) => from === index || to === index))
      .filter((way) => way !== undefined);
  }
}

const clusterConfig = (port: number, ways: readonly (TcpProxy | undefined)[]): string =>
  [
    'cluster {',
    '  name: "sluice"',
    `  listen: "127.0.0.1:${port}"`,
    `  advertise: "${NOWHERE}"`,
    '  connect_retries: 1',
    '  no_advertise: true',
    `  routes: [${ways.flatMap((way) => (way === undefined ? [] : [`"nats-route://127.0.0.1:${way.port}"`])).join(', ')}]`,
    '}',
  ].join('\n');
