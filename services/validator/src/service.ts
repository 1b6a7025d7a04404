import { provideLedger, requestController, type ServiceSpec } from '#libs/nest';
import { REQUESTS, validatorCore } from './core/index.js';

export const service: ServiceSpec = {
  name: 'validator',
  description: 'decides which configs may reach a node',
  controllers: [requestController(REQUESTS)],
  providers: [provideLedger(() => ({ core: validatorCore }))],
};
