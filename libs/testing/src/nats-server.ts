import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Guard,
  prepareNatsServer,
  waitForNatsServer,
  type NatsServerCommand,
  type NatsServerOptions,
} from '#libs/process';

/** A private nats-server on loopback. It ends when this process does. */
export interface NatsServer {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  /** The pid of the current process. It changes with a restart. */
  readonly pid: number;
  /** Ends it cleanly, and deletes its data unless the caller chose the `dataDir`. */
  stop(): Promise<void>;
  /** kill -9. The data is kept. */
  kill(): void;
  /** Starts it again with the same port and data, also after a kill. */
  restart(): Promise<void>;
}

const STOP_MS = 5_000;
/** Another process may take the port between finding it and listening on it. */
const PORT_TRIES = 5;

/** Starts a nats-server with JetStream on disk. Resolves when it accepts connections. */
export async function startNatsServer(options: Partial<NatsServerOptions> = {}): Promise<NatsServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'sluice-nats-')));
  const guard = new Guard();
  let command = await prepareNatsServer({ ...options, dataDir });
  let child = await start(command).catch(async (error: unknown) => {
    for (let tries = 1; tries < PORT_TRIES && isPortTaken(error) && !options.port; tries += 1) {
      command = await prepareNatsServer({ ...options, dataDir });
      const again = await start(command).catch((next: unknown) => void (error = next));
      if (again !== undefined) return again;
    }
    throw error;
  });
  guard.watch([child.pid as number]);
  return {
    url: command.url,
    port: command.port,
    dataDir,
    get pid() {
      return child.pid as number;
    },
    async stop() {
      await end(child);
      guard.close();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
    },
    kill() {
      child.kill('SIGKILL');
    },
    async restart() {
      await end(child);
      child = await start(command);
      guard.watch([child.pid as number]);
    },
  };
}

async function start(command: NatsServerCommand): Promise<ChildProcess> {
  const child = spawn(command.command, [...command.args], { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  let stderr = '';
  child.once('error', (error) => (stderr += error.message));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr = (stderr + chunk).slice(-4_096)));
  (child.stderr as unknown as { unref(): void }).unref();
  child.unref();
  try {
    await waitForNatsServer(command, () => !hasEnded(child) && child.pid !== undefined);
    return child;
  } catch (error) {
    await end(child);
    throw new Error(`${(error as Error).message}\n${stderr.trim().split('\n').slice(-5).join('\n')}`, { cause: error });
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return;
  if (!hasEnded(child)) child.kill('SIGTERM');
  const untilMs = performance.now() + STOP_MS;
  while (!hasEnded(child)) {
    if (performance.now() > untilMs) child.kill('SIGKILL');
    await sleep(10);
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;
const isPortTaken = (error: unknown): boolean => /already in use|belongs to another/.test((error as Error).message);
