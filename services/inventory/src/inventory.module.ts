import { Module } from '@nestjs/common';
import { provideLedger } from '#libs/bus';
import { inventoryCore } from './core/index.js';
import { InventoryController } from './shell/inventory.controller.js';
import { silentAfterMs } from './shell/silence.js';

@Module({
  controllers: [InventoryController],
  providers: [provideLedger(() => ({ core: inventoryCore({ silentAfterMs: silentAfterMs(process.env) }) }))],
})
export class InventoryModule {}
