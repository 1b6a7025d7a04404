import { Module, type Provider } from '@nestjs/common';
import { Bus, LedgerService, LOGGER, provideLedger, ServiceNotes } from '#libs/bus';
import type { Logger } from '#libs/runtime';
import { inventoryCore, type Input, type State } from './core/index.js';
import { InventoryController } from './shell/inventory.controller.js';
import { asksKubernetes, NodeObjects } from './shell/node-objects.js';
import { heartbeatsPerSecond, silentAfterMs } from './shell/heartbeats.js';
import { Pace } from './shell/pace.js';

/** Loaded only where it is asked for: the client of Kubernetes is large. */
const NODE_OBJECTS: Provider = {
  provide: 'NODE_OBJECTS',
  inject: [LedgerService, LOGGER, ServiceNotes],
  useFactory: async (ledger: LedgerService<State, Input>, logger: Logger, notes: ServiceNotes) => {
    if (!asksKubernetes(process.env)) return undefined;
    const { Kube, slownessNote } = await import('#libs/kube');
    const kube = await Kube.open({ logger, onSlow: (words) => notes.set('api-server', slownessNote(words)) });
    logger.info({ server: kube.server }, 'nodes are known to Kubernetes too');
    return new NodeObjects(ledger, kube, logger);
  },
};

@Module({
  controllers: [InventoryController],
  providers: [
    provideLedger(() => ({
      core: inventoryCore({
        silentAfterMs: silentAfterMs(process.env),
        heartbeatsPerSecond: heartbeatsPerSecond(process.env),
        kubernetes: asksKubernetes(process.env),
      }),
    })),
    { provide: Pace, inject: [Bus], useFactory: (bus: Bus) => new Pace(bus, heartbeatsPerSecond(process.env)) },
    NODE_OBJECTS,
  ],
})
export class InventoryModule {}
