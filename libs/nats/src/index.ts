export { carryOut } from './carry-out.js';
export { type SweepOptions, sweepBlobs } from './blob-sweep.js';
export { Blobs } from './blobs.js';
export { type ConnectionOptions, needsTls } from './connecting/connection-options.js';
export { connectTarget, type Target } from './connecting/target.js';
export { Bus, type BusOptions, connectBus } from './connection.js';
export { Election, type ElectionOptions } from './election.js';
export {
  AccessError,
  BadRequestError,
  ConnectionLostError,
  HaltedError,
  NoJetStreamError,
  NoLeaderError,
  ServerTooOldError,
  TopologyError,
  UnavailableError,
  isConnectionTrouble,
  isMissingStream,
  isNoResponders,
  isWithoutJetStream,
} from './errors.js';
export { type InputSource, InputStream } from './input-stream.js';
export { type LedgerParts, LedgerService, type LedgerServiceOptions } from './ledger-service.js';
export { LedgerTail } from './ledger-tail.js';
export { type TrimOptions, trimLedger } from './ledger-trim.js';
export { type AppendedFact, Ledger } from './ledger.js';
export { type BusMessage, busMessage, isDeletion, messageText, plainHeaders } from './messages.js';
export { Poison, type PoisonRecord } from './poison.js';
export { RequestEndpoints, type RequestHandler } from './request-endpoints.js';
export { type ServiceNote, ServiceNotes } from './service-notes.js';
export { Signal, growingMs, pause } from './signal.js';
export { Snapshots } from './snapshots.js';
export { type ReadOptions, StreamReader, lastOf, readAll } from './stream-reader.js';
export {
  DEFAULT_LEADER_TTL_MS,
  POISON,
  type TopologyOptions,
  compareTopology,
  ensureTopology,
  kvStream,
  kvSubject,
} from './topology.js';
export { type ViewEntry, listViews, newestViews, readView, watchViews } from './views.js';
