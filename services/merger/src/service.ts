import { createHash } from 'node:crypto';
import { Module } from '@nestjs/common';
import { CHANGES } from '#libs/contracts';
import { LedgerService } from '#libs/nats';
import { provideLedger, type ServiceSpec } from '#libs/nest';
import { mergerCore } from './core/index.js';
import { MergerController } from './shell/merger.controller.js';
import { Upkeep } from './shell/upkeep.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

@Module({
  controllers: [MergerController],
  providers: [provideLedger(() => ({ core: mergerCore(sha256), input: CHANGES })), Upkeep],
  exports: [LedgerService],
})
class MergerModule {}

export const service: ServiceSpec = {
  module: MergerModule,
  name: 'merger',
  description: 'renders one config per node from all changes',
};
