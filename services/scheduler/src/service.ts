import { Module } from '@nestjs/common';
import { REPORTS } from '#libs/contracts';
import { LedgerService } from '#libs/nats';
import { provideLedger, requestController, type RequestTable, type ServiceSpec } from '#libs/nest';
import { schedulerCore, type Request } from './core/index.js';
import { SchedulerController } from './shell/scheduler.controller.js';

/** What people and tools may ask the scheduler. */
const REQUESTS: RequestTable<Request> = {
  'rollout.list': 'ops.rollout.list',
  'rollout.get': 'ops.rollout.get',
  'rollout.pause': 'ops.rollout.pause',
  'rollout.resume': 'ops.rollout.resume',
  'rollout.abort': 'ops.rollout.abort',
  'node.why': 'ops.node.why',
  'node.skip': 'ops.node.skip',
  'pool.list': 'ops.pool.list',
  'pool.get': 'ops.pool.get',
  'pool.take': 'ops.pool.take',
  'pool.give': 'ops.pool.give',
};

@Module({
  controllers: [SchedulerController, requestController(REQUESTS)],
  providers: [provideLedger(() => ({ core: schedulerCore, input: REPORTS }))],
  exports: [LedgerService],
})
class SchedulerModule {}

export const service: ServiceSpec = {
  module: SchedulerModule,
  name: 'scheduler',
  description: 'decides which node may change when',
};
