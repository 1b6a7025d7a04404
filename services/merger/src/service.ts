import type { ServiceSpec } from '#libs/bus';
import { MergerModule } from './merger.module.js';

export const service: ServiceSpec = {
  module: MergerModule,
  name: 'merger',
  description: 'what is wanted, as one config per node',
};
