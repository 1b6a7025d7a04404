import { Module } from '@nestjs/common';
import { REPORTS } from '#libs/contracts';
import { Blobs, provideLedger } from '#libs/bus';
import { schedulerCore } from './core/index.js';
import { Planner } from './shell/planner.js';
import { SchedulerController } from './shell/scheduler.controller.js';

@Module({
  controllers: [SchedulerController],
  providers: [
    { provide: Planner, inject: [Blobs], useFactory: (blobs: Blobs) => new Planner(blobs) },
    provideLedger((planner: Planner) => ({ core: schedulerCore, input: REPORTS, gather: (needs) => planner.gather(needs) }), [Planner]),
  ],
})
export class SchedulerModule {}
