import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findNatsServer } from './binaries.js';

export interface NatsServerOptions {
  readonly dataDir: string;
  /** Default, and for 0: a free port. */
  readonly port?: number;
  /** More lines for its config file, such as accounts, limits or leaf nodes. */
  readonly config?: string;
  /** False for a leaf node that uses its hub's streams; a domain for the hub. */
  readonly jetStream?: false | { readonly domain: string };
}

/** How to run a nats-server. The caller supervises it. */
export interface NatsServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly url: string;
  readonly port: number;
  /** Identifies the server that must answer on the port, so that no other one is mistaken for it. */
  readonly serverName: string;
}

/** Finds a nats-server and writes the config that makes it listen on loopback only, with JetStream on disk. */
export async function prepareNatsServer(options: NatsServerOptions): Promise<NatsServerCommand> {
  const command = await findNatsServer();
  const port = options.port || (await freePort());
  const serverName = `sluice-${randomBytes(6).toString('hex')}`;
  await mkdir(options.dataDir, { recursive: true });
  const file = join(options.dataDir, 'nats-server.conf');
  await writeFile(
    file,
    [
      'host: "127.0.0.1"',
      `port: ${port}`,
      `server_name: "${serverName}"`,
      ...(options.jetStream === false
        ? []
        : [
            `jetstream: { store_dir: ${JSON.stringify(options.dataDir)}${options.jetStream === undefined ? '' : `, domain: ${options.jetStream.domain}`} }`,
          ]),
      options.config ?? '',
      '',
    ].join('\n'),
  );
  return { command, args: ['-c', file], url: `nats://127.0.0.1:${port}`, port, serverName };
}

/** Waits until this server accepts connections. `isAlive` says whether waiting still makes sense. */
export async function waitForNatsServer(
  server: NatsServerCommand,
  isAlive: () => boolean,
  timeoutMs = 30_000,
): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const name = await answeringServer(server.port);
    if (name === server.serverName) return;
    if (!isAlive())
      throw new Error(
        `nats-server ended before it was ready${name === undefined ? '' : `: port ${server.port} belongs to another server`}`,
      );
    if (performance.now() > untilMs)
      throw new Error(`nats-server does not answer on ${server.url} after ${timeoutMs / 1_000} s`);
    await sleep(20);
  }
}

function answeringServer(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    let text = '';
    const end = (name: string | undefined): void => {
      socket.destroy();
      resolve(name);
    };
    socket.setTimeout(1_000, () => end(undefined));
    socket.once('error', () => end(undefined));
    socket.once('close', () => end(undefined));
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\r\n')) end(/"server_name":"([^"]*)"/.exec(text)?.[1] ?? '');
    });
  });
}

/** A free TCP port of the loopback interface: any, or this one. Rejects if it is in use. */
export function freePort(preferred = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(preferred, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
