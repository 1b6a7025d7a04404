import { Module, type DynamicModule } from '@nestjs/common';
import type { Logger, Settings } from '#libs/runtime';
import { Blobs } from '../blobs.js';
import { Bus } from '../connection.js';
import type { LedgerServiceOptions } from '../service-tools.js';
import { Poison } from '../poison.js';
import { LEDGER_OPTIONS, LOGGER, SETTINGS } from './ledger-provider.js';
import { ServiceNotes } from './service-notes.js';

/** What every service's module can inject: Bus, Blobs, Poison, the logger as LOGGER, and the settings as SETTINGS. */
@Module({})
export class BusModule {
  static of(
    bus: Bus,
    logger: Logger,
    settings: Settings,
    tuning: Pick<LedgerServiceOptions, 'leaderTtlMs' | 'tail'>,
  ): DynamicModule {
    return {
      module: BusModule,
      global: true,
      providers: [
        { provide: Bus, useValue: bus },
        { provide: LOGGER, useValue: logger },
        {
          provide: LEDGER_OPTIONS,
          useValue: { ...tuning, snapshotFacts: settings.snapshotFacts, bus, logger } satisfies LedgerServiceOptions,
        },
        { provide: SETTINGS, useValue: settings },
        { provide: ServiceNotes, useValue: new ServiceNotes() },
        { provide: Blobs, useFactory: () => new Blobs(bus) },
        { provide: Poison, useFactory: () => new Poison(bus, logger) },
      ],
      exports: [Bus, LOGGER, SETTINGS, LEDGER_OPTIONS, ServiceNotes, Blobs, Poison],
    };
  }
}
