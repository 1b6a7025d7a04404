import { Module, type Provider } from '@nestjs/common';
import { Bus, LedgerService, ServiceNotes } from '#libs/nats';
import { LOGGER, provideLedger, requestController, SETTINGS, type RequestTable, type ServiceSpec } from '#libs/nest';
import type { Logger, Settings } from '#libs/process';
import { drainCore, type Input, type Request, type State } from './core/index.js';

/** Loaded only where it is asked for: the client of Kubernetes is large. */
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

/** What other tools may tell the drain service. */
const REQUESTS: RequestTable<Request> = { drained: 'ops.node.drained' };

@Module({
  controllers: [requestController(REQUESTS)],
  providers: [
    provideLedger(({ drainStrategy }: Settings) => ({ core: drainCore(drainStrategy) }), [SETTINGS]),
    DRAINER,
  ],
  exports: [LedgerService],
})
class DrainModule {}

export const service: ServiceSpec = {
  module: DrainModule,
  name: 'drain',
  description: 'drains nodes before they change',
};
