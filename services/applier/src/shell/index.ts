export type { HostSettings } from './host/host.js';
export { runApplier, type ApplierOptions, type RunningApplier } from './run-applier.js';
export { runAppliers, type RunningAppliers } from './run-applier.js';
export { runGuard } from './guard/run-guard.js';
export { serveApplier } from './serve.js';
export type { BusSource } from './bus-port.js';
export type { Log } from '../core/index.js';
export { EMPTY_HASH, hashOf } from './state/config-text.js';
export { StateError } from './state/state-error.js';
