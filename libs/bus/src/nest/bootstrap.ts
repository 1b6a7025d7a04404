import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { ModuleRef, NestFactory } from '@nestjs/core';
import type { INestMicroservice } from '@nestjs/common';
import {
  createLogger,
  giveBackMemory,
  letMemoryGrow,
  logHealth,
  nestLogger,
  serveHealth,
  settingsFrom,
  type HealthServer,
  type Logger,
  type Settings,
} from '#libs/runtime';
import { connectBus, type Bus } from '../connection.js';
import { isWithoutJetStream, NoJetStreamError, ServerTooOldError, TopologyError } from '../errors.js';
import { isConnectionTrouble } from '../ledger.js';
import { LedgerService } from '../ledger-service.js';
import { LedgerTail } from '../ledger-tail.js';
import { growingMs } from '../signal.js';
import { ensureTopology } from '../topology.js';
import { BusModule } from './bus-module.js';
import type { ProcessOptions, RunningProcess, RunningService, ServiceSpec } from './running-service.js';
import { ServiceNotes } from './service-notes.js';
import { JetStreamServer } from './jetstream-server.js';
import { RequestPipe, RethrowFilter } from './validation.js';

const CLOSE_MS = 5_000;
const START_AGAIN_MS = 5_000;

/** Connects, waiting for a server that is away, makes the topology, and runs the services until they are closed. They share one connection, and one reading of the ledger. */
export async function startServices(
  specs: readonly ServiceSpec[],
  options: ProcessOptions = {},
): Promise<RunningProcess> {
  const settings = options.settings ?? settingsFrom();
  const logger = options.logger ?? loggerOf(nameOf(specs), settings);
  const bus = await connectBus({
    servers: settings.servers,
    creds: settings.creds,
    token: settings.token,
    name: nameOf(specs),
    logger,
  });
  const shared: Shared = { options, settings, bus, tail: new LedgerTail(bus) };
  const running: RunningService[] = [];
  const close = async (): Promise<void> => {
    // One that cannot end cleanly takes nothing from the others: their snapshots are written, and their leads handed over.
    await all(running.map((service) => service.close())).finally(() => bus.close());
  };
  try {
    await ensureTopology(bus, { replicas: settings.replicas, ...ttlOf(options) });
    await all(specs.map(async (spec) => void running.push(await run(spec, shared))));
  } catch (error) {
    const { server } = bus;
    await close().catch((also: unknown) => logger.warn({ error: also }, 'what had started did not end cleanly'));
    throw isWithoutJetStream(error) && bus.nc.info?.jetstream !== true ? new NoJetStreamError(server) : error;
  }
  const stopGivingBack = giveBackMemory(() => running.reduce((sum, { ledger }) => sum + (ledger?.work ?? 0), 0));
  return {
    bus,
    services: running,
    close: async () => {
      stopGivingBack();
      await close();
    },
  };
}

/** Waits for each of them, also when one has failed already. */
async function all(ends: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(ends);
  await Promise.all(ends);
}

interface Shared {
  readonly options: ProcessOptions;
  readonly settings: Settings;
  readonly bus: Bus;
  readonly tail: LedgerTail;
}

async function run(
  { module, name, version, description }: ServiceSpec,
  { options, settings, bus, tail }: Shared,
): Promise<RunningService> {
  const logger = options.logger ?? loggerOf(name, settings);
  const strategy = new JetStreamServer({ bus, name, version: version ?? '0.1.0', description, logger });
  const root = { ...BusModule.of(bus, logger, settings, { tail, ...ttlOf(options) }), imports: [module] };
  const app = await NestFactory.createMicroservice(root, { strategy, logger: nestLogger(logger), abortOnError: false });
  app.useGlobalPipes(new RequestPipe());
  app.useGlobalFilters(new RethrowFilter());
  const ledger = ledgerOf(app);
  if (ledger !== undefined) strategy.serve(ledger);
  strategy.tell(app.get(ServiceNotes));
  await app.listen();
  const stopHealth = logHealth(logger, settings.healthMs, () => ({ ...ledger?.figures() }));
  logger.info({ server: bus.server }, 'ready');
  return {
    name,
    app,
    ledger,
    async close() {
      stopHealth();
      await app.close();
    },
  };
}

/** The same, again and again while a server is there and does not do what is asked: its cluster has no majority yet, or is very busy. */
async function startAtLast(
  specs: readonly ServiceSpec[],
  logger: Logger,
  isEnding: () => boolean,
): Promise<RunningProcess> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await startServices(specs);
    } catch (error) {
      if (!isConnectionTrouble(error) || isEnding()) throw error;
      logger.warn({ error }, `${nameOf(specs)} cannot start yet: ${(error as Error).message}; trying again`);
      await sleep(growingMs(tries, 500, START_AGAIN_MS)); // nothing else keeps the process alive now
    }
  }
}

/** The whole of a process that runs these services: until a signal, and ends with a clear word and code. */
export async function bootstrapServices(specs: readonly ServiceSpec[]): Promise<void> {
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
    health = await healthOf(settingsFrom(), () => running);
    running = await startAtLast(specs, logger, () => isEnding);
    letMemoryGrow();
    void running.bus.nc.closed().then((error) => {
      if (error === undefined) return;
      logger.error({ error }, 'the connection was closed for good');
      process.exit(1);
    });
  } catch (error) {
    logger.error(isExplained(error) ? {} : { error }, `${nameOf(specs)} cannot start: ${(error as Error).message}`);
    process.exit(1);
  }
}

/** It is answered before there is a bus, for who waits for that is alive. */
async function healthOf(
  { healthPort }: Settings,
  running: () => RunningProcess | undefined,
): Promise<HealthServer | undefined> {
  if (healthPort === undefined) return undefined;
  return serveHealth(healthPort, {
    dead: () => (running()?.bus.nc.isClosed() === true ? 'the connection to the bus was closed for good' : undefined),
    unready: () => unreadyOf(running()),
  });
}

function unreadyOf(running: RunningProcess | undefined): string | undefined {
  if (running === undefined) return 'it starts: it waits for the bus, or for its part of it';
  if (!running.bus.connected) return 'there is no connection to the bus';
  const unready = running.services.flatMap(({ name, app, ledger }) => {
    const reason = ledger === undefined ? app.get(ServiceNotes).missing : ledger.unready;
    return reason === undefined ? [] : [running.services.length === 1 ? reason : `${name}: ${reason}`];
  });
  return unready.length === 0 ? undefined : unready.join('; ');
}

/** What says itself what to do about it needs no trace. */
const isExplained = (error: unknown): boolean =>
  error instanceof NoJetStreamError || error instanceof ServerTooOldError || error instanceof TopologyError;

/** As the server's list of connections and the process's own log lines show it. */
const nameOf = (specs: readonly ServiceSpec[]): string => specs.map(({ name }) => name).join('+');

const loggerOf = (name: string, { logLevel }: Settings): Logger => createLogger(name, { level: logLevel });

const ttlOf = (options: ProcessOptions): { leaderTtlMs?: number } =>
  options.leaderTtlMs === undefined ? {} : { leaderTtlMs: options.leaderTtlMs };

/** Not every service has one. The reference is asked, for the application would log what it does not find as an error. */
function ledgerOf(app: INestMicroservice): LedgerService | undefined {
  const modules = app.get(ModuleRef);
  try {
    return modules.get(LedgerService, { strict: false });
  } catch {
    return undefined;
  }
}
