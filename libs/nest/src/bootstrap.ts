import { setTimeout as sleep } from 'node:timers/promises';
import {
  AccessError,
  growingMs,
  isConnectionTrouble,
  NoJetStreamError,
  NoStorageError,
  ServerTooOldError,
  ServiceNotes,
  TopologyError,
  type ConnectionOptions,
} from '#libs/nats';
import {
  createLogger,
  letMemoryGrow,
  serveHealth,
  settingsFrom,
  SettingsError,
  type HealthServer,
  type Logger,
  type Settings,
} from '#libs/process';
import type { ServiceSpec } from './service-module.js';
import { nameOf, startServices, type ProcessOptions, type RunningProcess } from './services.js';

const CLOSE_MS = 5_000;
const START_AGAIN_MS = 5_000;

/** Runs these services in this process until a signal, and exits with 0, or with 1 and the reason in the log. */
export async function bootstrapServices(specs: readonly ServiceSpec[], connection: ConnectionOptions): Promise<void> {
  const logger = createLogger(nameOf(specs));
  let running: RunningProcess | undefined;
  let isEnding = false;
  let health: HealthServer | undefined;
  const end = (signal: string): void => {
    isEnding = true;
    logger.info({ signal }, 'ending');
    setTimeout(() => process.exit(1), CLOSE_MS).unref();
    void Promise.all([running?.close(), health?.close()]).then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ error }, 'did not end cleanly');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  try {
    const settings = settingsFrom(
      process.env,
      specs.map(({ name }) => name),
    );
    health = await healthOf(settings, () => running);
    running = await startEventually(specs, { settings, connection }, logger, () => isEnding);
    letMemoryGrow();
    void running.bus.nc.closed().then((error) => {
      if (error === undefined) return;
      logger.error({ error }, 'the connection was closed for good');
      process.exit(1);
    });
  } catch (error) {
    logger.error(
      EXPLAINED.some((type) => error instanceof type) ? {} : { error },
      `${nameOf(specs)} cannot start: ${(error as Error).message}`,
    );
    process.exit(1);
  }
}

/** Tries again while there is a server that cannot serve yet: its cluster has no majority, or it is very busy. */
async function startEventually(
  specs: readonly ServiceSpec[],
  options: ProcessOptions,
  logger: Logger,
  isEnding: () => boolean,
): Promise<RunningProcess> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await startServices(specs, options);
    } catch (error) {
      if (!isConnectionTrouble(error) || isEnding()) throw error;
      logger.warn({ error }, `${nameOf(specs)} cannot start yet: ${(error as Error).message}; trying again`);
      await sleep(growingMs(tries, 500, START_AGAIN_MS)); // nothing else keeps the process alive now
    }
  }
}

/** Answers before there is a connection: a process that waits for NATS is alive. */
async function healthOf(
  { healthPort, healthAddress }: Settings,
  running: () => RunningProcess | undefined,
): Promise<HealthServer | undefined> {
  if (healthPort === undefined) return undefined;
  return serveHealth(healthPort, healthAddress, {
    dead: () => (running()?.bus.nc.isClosed() === true ? 'the connection to NATS was closed for good' : undefined),
    unready: () => unreadyOf(running()),
  });
}

function unreadyOf(running: RunningProcess | undefined): string | undefined {
  if (running === undefined) return 'it is starting and waits for NATS';
  if (!running.bus.connected) return 'it is not connected to NATS';
  const unready = running.services.flatMap(({ name, app, ledger }) => {
    const reason = ledger === undefined ? app.get(ServiceNotes).missing : ledger.unready;
    return reason === undefined ? [] : [running.services.length === 1 ? reason : `${name}: ${reason}`];
  });
  return unready.length === 0 ? undefined : unready.join('; ');
}

/** The messages of these errors say what to do. A stack trace would hide them. */
const EXPLAINED = [AccessError, NoJetStreamError, NoStorageError, ServerTooOldError, SettingsError, TopologyError];
