import { REPORTS } from '#libs/contracts';
import { provideLedger, requestController, type ServiceSpec } from '#libs/nest';
import { REQUESTS, schedulerCore } from './core/index.js';
import { SchedulerController } from './shell/scheduler.controller.js';

export const service: ServiceSpec = {
  name: 'scheduler',
  description: 'decides which node may change when',
  controllers: [SchedulerController, requestController(REQUESTS)],
  providers: [provideLedger(() => ({ core: schedulerCore, input: REPORTS }))],
};
