import type { ServiceSpec } from '#libs/bus';
import { SchedulerModule } from './scheduler.module.js';

export const service: ServiceSpec = { module: SchedulerModule, name: 'scheduler', description: 'who may change when' };
