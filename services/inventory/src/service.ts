import type { Provider } from '@nestjs/common';
import { Bus, LedgerService, ServiceNotes } from '#libs/nats';
import { LOGGER, provideLedger, requestController, SETTINGS, type ServiceSpec } from '#libs/nest';
import type { Logger, Settings } from '#libs/process';
import { inventoryCore, REQUESTS, type Input, type State } from './core/index.js';
import { InventoryController } from './shell/inventory.controller.js';
import { NodeObjects } from './shell/node-objects.js';
import { Pace } from './shell/pace.js';

/** Loaded only if needed, because the Kubernetes client is large. */
const NODE_OBJECTS: Provider = {
  provide: 'NODE_OBJECTS',
  inject: [LedgerService, LOGGER, ServiceNotes, SETTINGS],
  useFactory: async (
    ledger: LedgerService<State, Input>,
    logger: Logger,
    notes: ServiceNotes,
    { nodeSource }: Settings,
  ) => {
    if (nodeSource !== 'kubernetes') return undefined;
    const { Kube, slownessNote } = await import('#libs/kube');
    const kube = await Kube.open({ logger, onSlow: (words) => notes.set('api-server', slownessNote(words)) });
    logger.info({ server: kube.server }, 'reading nodes from Kubernetes too');
    return new NodeObjects(ledger, kube, logger);
  },
};

export const service: ServiceSpec = {
  name: 'inventory',
  description: 'tracks which nodes exist',
  controllers: [InventoryController, requestController(REQUESTS)],
  providers: [
    provideLedger(({ silentAfterMs, heartbeatsPerSecond, nodeSource }) => ({
      core: inventoryCore({ silentAfterMs, heartbeatsPerSecond, kubernetes: nodeSource === 'kubernetes' }),
    })),
    {
      provide: Pace,
      inject: [Bus, SETTINGS],
      useFactory: (bus: Bus, { heartbeatsPerSecond }: Settings) => new Pace(bus, heartbeatsPerSecond),
    },
    NODE_OBJECTS,
  ],
};
