import { Module, type DynamicModule, type InjectionToken, type Provider, type Type } from '@nestjs/common';
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
/** What the process took from its environment, for injection. */
export const SETTINGS = Symbol('SETTINGS');
export const LEDGER_OPTIONS = Symbol('LEDGER_OPTIONS');

/** What a service is, for the process that runs it. */
export interface ServiceSpec {
  /** Exports its LedgerService, if it has one. */
  readonly module: Type;
  /** Of its micro service, its election and its log lines. */
  readonly name: string;
  readonly version?: string;
  readonly description: string;
}

/** What the process gives a service. */
export interface ServiceHost extends Pick<LedgerServiceOptions, 'leaderTtlMs' | 'tail'> {
  readonly bus: Bus;
  readonly logger: Logger;
  readonly settings: Settings;
}

/** The root of a service's application: its own module, the transport, and what every module can inject. */
@Module({})
export class ServiceModule {
  static of({ module, name, version = '0.1.0', description }: ServiceSpec, host: ServiceHost): DynamicModule {
    const { bus, logger, settings, ...tuning } = host;
    const shared: Provider[] = [
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
    ];
    return {
      module: ServiceModule,
      global: true,
      imports: [module],
      providers: [
        ...shared,
        {
          provide: JetStreamServer,
          inject: [ServiceNotes, { token: LedgerService, optional: true }],
          useFactory: (notes: ServiceNotes, ledger?: LedgerService) =>
            new JetStreamServer({ bus, name, version, description, logger, notes, ledger }),
        },
        { provide: APP_FILTER, useClass: RethrowFilter },
      ],
      exports: shared.map((provider) => (provider as { readonly provide: InjectionToken }).provide),
    };
  }
}

/** The provider of a service's LedgerService: `make` gets what `inject` names, and says the core. */
export function provideLedger<
  S,
  I extends object,
  N extends Need = never,
  G = never,
  D extends readonly unknown[] = [],
>(
  make: (...dependencies: D) => LedgerParts<S, I, N, G>,
  inject: { readonly [K in keyof D]: InjectionToken<D[K]> } = [] as never,
): Provider {
  return {
    provide: LedgerService,
    inject: [LEDGER_OPTIONS, ...(inject as readonly InjectionToken[])],
    useFactory: (options: LedgerServiceOptions, ...dependencies: unknown[]) =>
      new LedgerService(make(...(dependencies as unknown as D)), options),
  };
}
