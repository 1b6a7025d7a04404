import '../../../libs/runtime/src/lean-start.js';
import { bootstrapService } from '#libs/bus';
import { MergerModule } from './merger.module.js';

void bootstrapService(MergerModule, { name: 'merger', description: 'what is wanted, as one config per node' });
