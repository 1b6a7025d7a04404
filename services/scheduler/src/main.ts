import '../../../libs/runtime/src/lean-start.js';
import { bootstrapServices } from '#libs/bus';
import { service } from './service.js';

void bootstrapServices([service]);
