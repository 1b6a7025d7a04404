export { sweepBlobs, type Swept, type SweepOptions } from './blob-sweep.js';
export * from './blobs.js';
export * from './connection.js';
export { Election, type ElectionOptions } from './election.js';
export * from './errors.js';
export * from './fleet-client.js';
export { connectFleet, type FleetOptions } from './fleet.js';
export * from './ledger.js';
export * from './ledger-service.js';
export type { LedgerParts, LedgerServiceOptions } from './service-tools.js';
export { trimLedger, type HeldUp, type Trimming, type TrimOptions } from './ledger-trim.js';
export * from './node-bus.js';
export { connectNodeBus, type NodeBusOptions } from './node-bus-connection.js';
export * from './poison.js';
export * from './snapshots.js';
export { growingMs, Signal } from './signal.js';
export { readAll, StreamReader, type BusMessage, type Reading } from './stream-reader.js';
export {
  compareTopology,
  DEFAULT_LEADER_TTL_MS,
  ensureTopology,
  kvStream,
  kvSubject,
  POISON,
  type TopologyOptions,
} from './topology.js';
export { listViews, readView, watchViews, type ViewEntry } from './view-reader.js';
// Nothing here loads Nest: see nest/service.ts.
export { BusContext } from './nest/bus-context.js';
export type { InputSource } from './nest/input-streams.js';
export { LEDGER_OPTIONS, LOGGER, provideLedger, SETTINGS } from './nest/ledger-provider.js';
export { bootstrapServices, startService, startServices } from './nest/service.js';
export { ServiceNotes, type ServiceNote } from './nest/service-notes.js';
export type { ProcessOptions, RunningProcess, RunningService, ServiceSpec } from './nest/running-service.js';
