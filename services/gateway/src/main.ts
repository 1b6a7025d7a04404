import '../../../libs/runtime/src/lean-start.js';
import { bootstrapService } from '#libs/bus';
import { GatewayModule } from './gateway.module.js';

void bootstrapService(GatewayModule, { name: 'gateway', description: 'publishes custom resources of Kubernetes, and says in them what became of that' });
