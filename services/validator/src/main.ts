import '../../../libs/runtime/src/lean-start.js';
import { bootstrapService } from '#libs/bus';
import { ValidatorModule } from './validator.module.js';

void bootstrapService(ValidatorModule, { name: 'validator', description: 'what may reach a node' });
