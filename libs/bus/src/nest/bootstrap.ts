import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { ModuleRef, NestFactory } from '@nestjs/core';
import type { INestMicroservice, Type } from '@nestjs/common';
import { createLogger, giveBackMemory, letMemoryGrow, logHealth, nestLogger, serveHealth, settingsFrom, type HealthServer, type Logger, type Settings } from '#libs/runtime';
import { connectBus, type Bus } from '../connection.js';
import { isWithoutJetStream, NoJetStreamError, ServerTooOldError, TopologyError } from '../errors.js';
import { isConnectionTrouble } from '../ledger.js';
import { LedgerService } from '../ledger-service.js';
import { growingMs } from '../signal.js';
import { ensureTopology } from '../topology.js';
import { BusModule } from './bus-module.js';
import type { RunningService, ServiceOptions } from './running-service.js';
import { ServiceNotes } from './service-notes.js';
import { JetStreamServer } from './jetstream-server.js';
import { RequestPipe, RethrowFilter } from './validation.js';

const CLOSE_MS = 5_000;
const START_AGAIN_MS = 5_000;

/** Connects, waiting for a server that is away, makes the topology, and runs the module until it is closed. */
export async function startService(module: Type, options: ServiceOptions): Promise<RunningService> {
  const settings = options.settings ?? settingsFrom();
  const logger = options.logger ?? createLogger(options.name, { level: settings.logLevel });
  const bus = await connectBus({ servers: settings.servers, creds: settings.creds, token: settings.token, name: options.name, logger });
  try {
    await ensureTopology(bus, { replicas: settings.replicas, ...ttlOf(options) });
    return await run(module, options, settings, logger, bus);
  } catch (error) {
    const { server } = bus;
    await bus.close();
    throw isWithoutJetStream(error) && bus.nc.info?.jetstream !== true ? new NoJetStreamError(server) : error;
  }
}

async function run(module: Type, options: ServiceOptions, settings: Settings, logger: Logger, bus: Bus): Promise<RunningService> {
  const strategy = new JetStreamServer({ bus, name: options.name, version: options.version ?? '0.1.0', description: options.description ?? '', logger });
  const root = { ...BusModule.of(bus, logger, settings, ttlOf(options)), imports: [module] };
  const app = await NestFactory.createMicroservice(root, { strategy, logger: nestLogger(logger), abortOnError: false });
  app.useGlobalPipes(new RequestPipe());
  app.useGlobalFilters(new RethrowFilter());
  const ledger = ledgerOf(app);
  if (ledger !== undefined) strategy.serve(ledger);
  strategy.tell(app.get(ServiceNotes));
  await app.listen();
  const stopGivingBack = giveBackMemory(() => ledger?.work ?? 0);
  const stopHealth = logHealth(logger, settings.healthMs, () => ({ ...ledger?.figures() }));
  logger.info({ server: bus.server }, 'ready');
  return {
    app,
    bus,
    ledger,
    async close() {
      stopHealth();
      stopGivingBack();
      await app.close();
      await bus.close();
    },
  };
}

/** The same, again and again while a server is there and does not do what is asked: its cluster has no majority yet, or is very busy. */
async function startAtLast(module: Type, options: ServiceOptions, logger: Logger, isEnding: () => boolean): Promise<RunningService> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await startService(module, options);
    } catch (error) {
      if (!isConnectionTrouble(error) || isEnding()) throw error;
      logger.warn({ error }, `${options.name} cannot start yet: ${(error as Error).message}; trying again`);
      await sleep(growingMs(tries, 500, START_AGAIN_MS)); // nothing else keeps the process alive now
    }
  }
}

/** The whole of a service's `main`: runs it until a signal, and ends the process with a clear word and code. */
export async function bootstrapService(module: Type, options: ServiceOptions): Promise<void> {
  const logger = options.logger ?? createLogger(options.name);
  let service: RunningService | undefined;
  let isEnding = false;
  let health: HealthServer | undefined;
  const end = (signal: string): void => {
    isEnding = true;
    logger.info({ signal }, 'ending');
    setTimeout(() => process.exit(1), CLOSE_MS).unref();
    void Promise.all([service?.close(), health?.close()]).then(
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
    health = await healthOf(options.settings ?? settingsFrom(), () => service);
    service = await startAtLast(module, options, logger, () => isEnding);
    letMemoryGrow();
    void service.bus.nc.closed().then((error) => {
      if (error === undefined) return;
      logger.error({ error }, 'the connection was closed for good');
      process.exit(1);
    });
  } catch (error) {
    logger.error(isExplained(error) ? {} : { error }, `${options.name} cannot start: ${(error as Error).message}`);
    process.exit(1);
  }
}

/** It is answered before there is a bus, for who waits for that is alive. */
async function healthOf({ healthPort }: Settings, service: () => RunningService | undefined): Promise<HealthServer | undefined> {
  if (healthPort === undefined) return undefined;
  return serveHealth(healthPort, {
    dead: () => (service()?.bus.nc.isClosed() === true ? 'the connection to the bus was closed for good' : undefined),
    unready: () => unreadyOf(service()),
  });
}

function unreadyOf(service: RunningService | undefined): string | undefined {
  if (service === undefined) return 'it starts: it waits for the bus, or for its part of it';
  if (service.ledger !== undefined) return service.ledger.unready;
  return service.bus.connected ? service.app.get(ServiceNotes).missing : 'there is no connection to the bus';
}

/** What says itself what to do about it needs no trace. */
const isExplained = (error: unknown): boolean => error instanceof NoJetStreamError || error instanceof ServerTooOldError || error instanceof TopologyError;

const ttlOf = (options: ServiceOptions): { leaderTtlMs?: number } => (options.leaderTtlMs === undefined ? {} : { leaderTtlMs: options.leaderTtlMs });

/** Not every service has one. The reference is asked, for the application would log what it does not find as an error. */
function ledgerOf(app: INestMicroservice): LedgerService | undefined {
  const modules = app.get(ModuleRef);
  try {
    return modules.get(LedgerService, { strict: false });
  } catch {
    return undefined;
  }
}
