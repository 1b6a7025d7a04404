import { Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from '#libs/runtime';
import { Blobs } from '../blobs.js';
import { Bus } from '../connection.js';
import type { LedgerServiceOptions } from '../ledger-service.js';
import { Poison } from '../poison.js';
import { LEDGER_OPTIONS, LOGGER } from './ledger-provider.js';

/** What every service's module can inject: Bus, Blobs, Poison, and the logger as LOGGER. */
@Module({})
export class BusModule {
  static of(bus: Bus, logger: Logger, tuning: Pick<LedgerServiceOptions, 'snapshotFacts' | 'leaderTtlMs'>): DynamicModule {
    return {
      module: BusModule,
      global: true,
      providers: [
        { provide: Bus, useValue: bus },
        { provide: LOGGER, useValue: logger },
        { provide: LEDGER_OPTIONS, useValue: { ...tuning, bus, logger } },
        { provide: Blobs, useFactory: () => new Blobs(bus) },
        { provide: Poison, useFactory: () => new Poison(bus, logger) },
      ],
      exports: [Bus, LOGGER, LEDGER_OPTIONS, Blobs, Poison],
    };
  }
}
