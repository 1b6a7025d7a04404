import '../../../libs/runtime/src/lean-start.js';
import { bootstrapService } from '#libs/bus';
import { DrainModule } from './drain.module.js';

void bootstrapService(DrainModule, { name: 'drain', description: 'gives nodes free before they change' });
