import type { INestMicroservice, Type } from '@nestjs/common';
import type { Logger, Settings } from '#libs/runtime';
import type { Bus } from '../connection.js';
import type { LedgerService } from '../ledger-service.js';

export interface ServiceOptions {
  /** Of the service: its micro service, its connection and its log lines. */
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly settings?: Settings;
  readonly logger?: Logger;
  readonly leaderTtlMs?: number;
}

/** A service that runs in this process. */
export interface RunningService {
  readonly app: INestMicroservice;
  readonly bus: Bus;
  /** Absent in a service without a ledger. */
  readonly ledger: LedgerService | undefined;
  close(): Promise<void>;
}

// Nest is loaded only by who runs a service: tools and appliers, which use this library too, start without it.

/** Connects, waiting for a server that is away, makes the topology, and runs the module until it is closed. */
export async function startService(module: Type, options: ServiceOptions): Promise<RunningService> {
  return (await import('./bootstrap.js')).startService(module, options);
}

/** The whole of a service's `main`: runs it until a signal, and ends the process with a clear word and code. */
export async function bootstrapService(module: Type, options: ServiceOptions): Promise<void> {
  return (await import('./bootstrap.js')).bootstrapService(module, options);
}
