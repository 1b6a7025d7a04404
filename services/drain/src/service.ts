import type { Provider } from '@nestjs/common';
import { Bus, LedgerService, ServiceNotes } from '#libs/nats';
import { LOGGER, provideLedger, requestController, SETTINGS, type ServiceSpec } from '#libs/nest';
import type { Logger, Settings } from '#libs/process';
import { drainCore, REQUESTS, type Input, type State } from './core/index.js';

/** Loaded only if needed, because the Kubernetes client is large. */
const DRAINER: Provider = {
  provide: 'DRAINER',
  inject: [LedgerService, Bus, LOGGER, ServiceNotes, SETTINGS],
  useFactory: async (
    ledger: LedgerService<State, Input>,
    bus: Bus,
    logger: Logger,
    notes: ServiceNotes,
    { drainStrategy, pod }: Settings,
  ) => {
    if (drainStrategy !== 'kubernetes') return undefined;
    const [{ Kube, slownessNote }, { Drainer }] = await Promise.all([
      import('#libs/kube'),
      import('./shell/kubernetes/drainer.js'),
    ]);
    const kube = await Kube.open({ logger, onSlow: (words) => notes.set('api-server', slownessNote(words)) });
    logger.info({ server: kube.server }, 'draining nodes through Kubernetes');
    return new Drainer(ledger, bus, kube, logger, pod === '' ? undefined : pod);
  },
};

export const service: ServiceSpec = {
  name: 'drain',
  description: 'drains nodes before they change',
  controllers: [requestController(REQUESTS)],
  providers: [provideLedger(({ drainStrategy }) => ({ core: drainCore(drainStrategy) })), DRAINER],
};
