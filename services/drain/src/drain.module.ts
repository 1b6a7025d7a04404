import { Module, type Provider } from '@nestjs/common';
import { Bus, LedgerService, LOGGER, provideLedger, ServiceNotes } from '#libs/bus';
import type { Logger } from '#libs/runtime';
import { drainCore, type Input, type State } from './core/index.js';
import { DrainController } from './shell/drain.controller.js';
import { selfFrom, strategyFrom } from './shell/strategy.js';

/** Loaded only where it is asked for: the client of Kubernetes is large. */
const DRAINER: Provider = {
  provide: 'DRAINER',
  inject: [LedgerService, Bus, LOGGER, ServiceNotes],
  useFactory: async (ledger: LedgerService<State, Input>, bus: Bus, logger: Logger, notes: ServiceNotes) => {
    if (strategyFrom(process.env) !== 'kubernetes') return undefined;
    const [{ Kube, slownessNote }, { Drainer }] = await Promise.all([
      import('#libs/kube'),
      import('./shell/kubernetes/drainer.js'),
    ]);
    const kube = await Kube.open({ logger, onSlow: (words) => notes.set('api-server', slownessNote(words)) });
    logger.info({ server: kube.server }, 'nodes are drained by way of Kubernetes');
    return new Drainer(ledger, bus, kube, logger, selfFrom(process.env));
  },
};

@Module({
  controllers: [DrainController],
  providers: [provideLedger(() => ({ core: drainCore(strategyFrom(process.env)) })), DRAINER],
})
export class DrainModule {}
