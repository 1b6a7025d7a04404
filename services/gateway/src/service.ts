import type { ServiceSpec } from '#libs/bus';
import { GatewayModule } from './gateway.module.js';

export const service: ServiceSpec = {
  module: GatewayModule,
  name: 'gateway',
  description: 'publishes custom resources of Kubernetes, and says in them what became of that',
};
