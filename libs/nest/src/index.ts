export { bootstrapServices } from './bootstrap.js';
export {
  startService,
  startServices,
  type ProcessOptions,
  type RunningProcess,
  type RunningService,
} from './services.js';
export { BusContext, OpsRequest, requestController } from './requests.js';
export { LEDGER_OPTIONS, LOGGER, SETTINGS, provideLedger, type ServiceSpec } from './service-module.js';
