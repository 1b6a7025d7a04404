import '../../../libs/runtime/src/lean-start.js';
import { bootstrapService } from '#libs/bus';
import { InventoryModule } from './inventory.module.js';

void bootstrapService(InventoryModule, { name: 'inventory', description: 'which nodes there are' });
