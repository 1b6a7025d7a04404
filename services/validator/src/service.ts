import type { ServiceSpec } from '#libs/bus';
import { ValidatorModule } from './validator.module.js';

export const service: ServiceSpec = {
  module: ValidatorModule,
  name: 'validator',
  description: 'what may reach a node',
};
