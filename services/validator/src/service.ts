import { Module } from '@nestjs/common';
import { LedgerService } from '#libs/nats';
import { provideLedger, requestController, type RequestTable, type ServiceSpec } from '#libs/nest';
import { validatorCore, type Request } from './core/index.js';

/** What people and tools may ask the validator. */
const REQUESTS: RequestTable<Request> = { list: 'ops.known-bad.list', clear: 'ops.known-bad.clear' };

@Module({
  controllers: [requestController(REQUESTS)],
  providers: [provideLedger(() => ({ core: validatorCore }))],
  exports: [LedgerService],
})
class ValidatorModule {}

export const service: ServiceSpec = {
  module: ValidatorModule,
  name: 'validator',
  description: 'decides which configs may reach a node',
};
