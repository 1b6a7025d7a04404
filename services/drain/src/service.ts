import type { ServiceSpec } from '#libs/bus';
import { DrainModule } from './drain.module.js';

export const service: ServiceSpec = {
  module: DrainModule,
  name: 'drain',
  description: 'gives nodes free before they change',
};
