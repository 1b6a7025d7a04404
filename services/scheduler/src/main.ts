import '../../../libs/runtime/src/lean-start.js';
import { bootstrapService } from '#libs/bus';
import { SchedulerModule } from './scheduler.module.js';

void bootstrapService(SchedulerModule, { name: 'scheduler', description: 'who may change when' });
