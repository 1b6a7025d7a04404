import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { INestMicroservice, LoggerService } from '@nestjs/common';
import type { AsyncMicroserviceOptions } from '@nestjs/microservices';
import {
  connectBus,
  connectTarget,
  ensureTopology,
  isWithoutJetStream,
  LedgerTail,
  NoJetStreamError,
  type Bus,
  type ConnectionOptions,
  type LedgerService,
} from '#libs/nats';
import { createLogger, giveBackMemory, logHealth, settingsFrom, type Logger, type Settings } from '#libs/process';
import { JetStreamServer } from './jetstream-server.js';
import { ServiceModule, type ServiceHost, type ServiceSpec } from './service-module.js';

/** Common to all services of a process. */
export interface ProcessOptions {
  /** Default: from the environment. */
  readonly connection?: ConnectionOptions;
  readonly settings?: Settings;
  /** Default: one logger for each service, with its name. */
  readonly logger?: Logger;
  readonly leaderTtlMs?: number | undefined;
}

/** A service that runs in this process. */
export interface RunningService {
  readonly name: string;
  readonly app: INestMicroservice;
  /** Undefined for a service without a ledger. */
  readonly ledger: LedgerService | undefined;
  close(): Promise<void>;
}

export interface RunningProcess {
  readonly bus: Bus;
  readonly services: readonly RunningService[];
  close(): Promise<void>;
}

/** Connects, waiting for a server, and runs the services on one connection until they are closed. */
export async function startServices(
  specs: readonly ServiceSpec[],
  options: ProcessOptions = {},
): Promise<RunningProcess> {
  const settings = options.settings ?? settingsFrom();
  const logger = options.logger ?? loggerOf(nameOf(specs), settings);
  const bus = await connectBus({
    ...(options.connection ?? connectTarget({}, process.env)),
    name: nameOf(specs),
    logger,
  });
  const shared = { settings, bus, tail: new LedgerTail(bus), leaderTtlMs: options.leaderTtlMs };
  const running: RunningService[] = [];
  const close = async (): Promise<void> => {
    // A service that cannot end cleanly does not stop the others from writing their snapshots and handing over their
    // leadership.
    await all(running.map((service) => service.close())).finally(() => bus.close());
  };
  try {
    await ensureTopology(bus, { replicas: settings.replicas, leaderTtlMs: options.leaderTtlMs });
    await all(
      specs.map(
        async (spec) =>
          void running.push(await run(spec, { ...shared, logger: options.logger ?? loggerOf(spec.name, settings) })),
      ),
    );
  } catch (error) {
    const { server } = bus;
    const lacking = isWithoutJetStream(error) ? await bus.whyNoJetStream() : undefined;
    await close().catch((also: unknown) =>
      logger.warn({ error: also }, 'the services that had started did not stop cleanly'),
    );
    throw lacking === undefined ? error : new NoJetStreamError(server, lacking, { cause: error });
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

/** Waits for each of them, even if one has already failed. */
async function all(ends: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(ends);
  await Promise.all(ends);
}

async function run(spec: ServiceSpec, host: ServiceHost): Promise<RunningService> {
  const { bus, logger, settings } = host;
  const app = await NestFactory.createMicroservice<AsyncMicroserviceOptions>(ServiceModule.of(spec, host), {
    inject: [JetStreamServer],
    useFactory: (strategy: JetStreamServer) => ({ strategy }),
    logger: nestLogger(logger),
    abortOnError: false,
  });
  await app.listen();
  const { ledger } = app.get(JetStreamServer);
  const stopHealth = logHealth(logger, settings.healthMs, () => ({ ...ledger?.figures() }));
  logger.info({ server: bus.server }, 'ready');
  return {
    name: spec.name,
    app,
    ledger,
    async close() {
      stopHealth();
      await app.close();
    },
  };
}

/** Runs one service with its own connection, which is closed with it. */
export async function startService(spec: ServiceSpec, options?: ProcessOptions): Promise<RunningService> {
  const { services, close } = await startServices([spec], options);
  return { ...(services[0] as RunningService), close };
}

/** The name in the server's list of connections and in the log lines of the process. */
export const nameOf = (specs: readonly ServiceSpec[]): string => specs.map(({ name }) => name).join('+');

const loggerOf = (name: string, { logLevel }: Settings): Logger => createLogger(name, { level: logLevel });

/** Sends Nest's own messages (which module was loaded, which route was mapped) through the project's logger. */
function nestLogger(logger: Logger): LoggerService {
  const fields = (rest: readonly unknown[]): object => {
    const context = rest.findLast((part) => typeof part === 'string');
    return context === undefined ? {} : { context };
  };
  const text = (message: unknown): string =>
    message instanceof Error ? (message.stack ?? message.message) : String(message);
  const at =
    (level: 'debug' | 'warn' | 'error') =>
    (message: unknown, ...rest: unknown[]): void =>
      logger[level](fields(rest), text(message));
  const [debug, warn, error] = [at('debug'), at('warn'), at('error')];
  return { log: debug, debug, verbose: debug, warn, error, fatal: error };
}
