import type { INestMicroservice } from '@nestjs/common';
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
