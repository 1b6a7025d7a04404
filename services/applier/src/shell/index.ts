export { heartbeatMs } from './heartbeat.js';
export { commandWords, type HostSettings } from './host/host-settings.js';
export { runApplier, type ApplierOptions, type RunningApplier } from './run-applier.js';
export { runAppliers, type RunningAppliers } from './run-appliers.js';
export type { BusSource } from './bus-port.js';
export type { Log } from './ports.js';
export { EMPTY_HASH, hashOf } from './state/config-text.js';
export { StateError } from './state/state-error.js';
