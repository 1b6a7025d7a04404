import type { InjectionToken, Provider } from '@nestjs/common';
import type { Need } from '#libs/kernel';
import { LedgerService } from '../ledger-service.js';
import type { LedgerParts, LedgerServiceOptions } from '../service-tools.js';

/** The process's logger, for injection. */
export const LOGGER = Symbol('LOGGER');
/** What the process took from its environment, for injection. */
export const SETTINGS = Symbol('SETTINGS');
export const LEDGER_OPTIONS = Symbol('LEDGER_OPTIONS');

/** The provider of a service's LedgerService: `make` gets what `inject` names, and says the core and how to gather. */
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
