import type { INestMicroservice, Type } from '@nestjs/common';
import type { Logger, Settings } from '#libs/runtime';
import type { Bus } from '../connection.js';
import type { LedgerService } from '../ledger-service.js';

/** What a service is, for the process that runs it. */
export interface ServiceSpec {
  readonly module: Type;
  /** Of its micro service, its election and its log lines. */
  readonly name: string;
  readonly version?: string;
  readonly description: string;
}

/** What is the same for all services of a process. */
export interface ProcessOptions {
  /** Default: as the environment says. */
  readonly settings?: Settings;
  /** Default: one for each service, with its name. */
  readonly logger?: Logger;
  readonly leaderTtlMs?: number;
}

/** A service that runs in this process. */
export interface RunningService {
  readonly name: string;
  readonly app: INestMicroservice;
  /** Absent in a service without a ledger. */
  readonly ledger: LedgerService | undefined;
  close(): Promise<void>;
}

export interface RunningProcess {
  readonly bus: Bus;
  readonly services: readonly RunningService[];
  close(): Promise<void>;
}
