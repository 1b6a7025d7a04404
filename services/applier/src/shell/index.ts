export { heartbeatMs } from './heartbeat.js';
export { capabilitiesOf, runApplier, type ApplierOptions, type RunningApplier } from './run-applier.js';
export { runAppliers, type RunningAppliers } from './run-appliers.js';
export { runGuard } from './guard/run-guard.js';
export type { GuardOrder } from './guard/guard.js';
export type { BusSource } from './bus-port.js';
export type { Log } from './ports.js';
export { EMPTY_HASH, hashOf } from './state/config-text.js';
export { StateError } from './state/state-error.js';
