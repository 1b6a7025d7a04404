import type { ServiceSpec } from '#libs/bus';
import { InventoryModule } from './inventory.module.js';

export const service: ServiceSpec = {
  module: InventoryModule,
  name: 'inventory',
  description: 'which nodes there are',
};
