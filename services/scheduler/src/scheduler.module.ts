import { Module } from '@nestjs/common';
import { REPORTS } from '#libs/contracts';
import { Blobs, LOGGER, provideLedger } from '#libs/bus';
import type { Logger } from '#libs/runtime';
import { schedulerCore } from './core/index.js';
import { Planner } from './shell/planner.js';
import { SchedulerController } from './shell/scheduler.controller.js';

@Module({
  controllers: [SchedulerController],
  providers: [
    {
      provide: Planner,
      inject: [Blobs, LOGGER],
      useFactory: (blobs: Blobs, logger: Logger) => new Planner(blobs, logger),
    },
    provideLedger(
      (planner: Planner) => ({ core: schedulerCore, input: REPORTS, gather: (needs) => planner.gather(needs) }),
      [Planner],
    ),
  ],
})
export class SchedulerModule {}
