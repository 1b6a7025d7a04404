import { Module, type DynamicModule, type Provider, type Type } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import type { Need } from '#libs/engine';
import {
  Blobs,
  Bus,
  LedgerService,
  Poison,
  ServiceNotes,
  type LedgerParts,
  type LedgerServiceOptions,
} from '#libs/nats';
import type { Logger, Settings } from '#libs/process';
import { JetStreamServer } from './jetstream-server.js';
import { RethrowFilter } from './requests.js';

/** The service's logger, for injection. */
export const LOGGER = Symbol('LOGGER');
/** The settings of the process, for injection. */
export const SETTINGS = Symbol('SETTINGS');
export const LEDGER_OPTIONS = Symbol('LEDGER_OPTIONS');

/** Describes a service to the process that runs it. */
export interface ServiceSpec {
  readonly controllers?: readonly Type[];
  /** The service's own providers, which can inject what every service has. */
  readonly providers?: readonly Provider[];
  /** The name of its micro service, its election and its log lines. */
  readonly name: string;
  readonly version?: string;
  readonly description: string;
}

/** What the process gives to a service. */
export interface ServiceHost extends Pick<LedgerServiceOptions, 'leaderTtlMs' | 'tail'> {
  readonly bus: Bus;
  readonly logger: Logger;
  readonly settings: Settings;
}

/** The application of a service: its own providers, the transport, and what every service can inject. */
@Module({})
export class ServiceModule {
  static of({ name, version = '0.1.0', description, ...own }: ServiceSpec, host: ServiceHost): DynamicModule {
    const { bus, logger, settings, ...tuning } = host;
    return {
      module: ServiceModule,
      controllers: [...(own.controllers ?? [])],
      providers: [
        { provide: Bus, useValue: bus },
        { provide: LOGGER, useValue: logger },
        { provide: SETTINGS, useValue: settings },
        {
          provide: LEDGER_OPTIONS,
          useValue: { ...tuning, snapshotFacts: settings.snapshotFacts, bus, logger } satisfies LedgerServiceOptions,
        },
        { provide: ServiceNotes, useValue: new ServiceNotes() },
        { provide: Blobs, useFactory: () => new Blobs(bus) },
        { provide: Poison, useFactory: () => new Poison(bus, logger) },
        ...(own.providers ?? []),
        {
          provide: JetStreamServer,
          inject: [ServiceNotes, { token: LedgerService, optional: true }],
          useFactory: (notes: ServiceNotes, ledger?: LedgerService) =>
            new JetStreamServer({ bus, name, version, description, logger, notes, ledger }),
        },
        { provide: APP_FILTER, useClass: RethrowFilter },
      ],
    };
  }
}

/** The provider of a service's LedgerService; `partsOf` returns the core. */
export const provideLedger = <S, I extends object, N extends Need = never, G = never>(
  partsOf: (settings: Settings) => LedgerParts<S, I, N, G>,
): Provider => ({
  provide: LedgerService,
  inject: [LEDGER_OPTIONS, SETTINGS],
  useFactory: (options: LedgerServiceOptions, settings: Settings) => new LedgerService(partsOf(settings), options),
});
