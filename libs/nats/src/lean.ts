// A second entry point, for clients. Code that only services need would cost an applier memory, and each `sluice`
// command time.
export { Blobs } from './blobs.js';
export { acceptedChange, type OutgoingChange, publishChange, trimChanges } from './changes.js';
export { type ConnectionOptions, needsTls } from './connecting/connection-options.js';
export { connectTarget, type Target } from './connecting/target.js';
export { Bus, type BusOptions, connectBus } from './connection.js';
export * from './errors.js';
export * from './hub-claims.js';
export { type BusMessage, busMessage, isDeletion, messageText, plainHeaders } from './messages.js';
export { type ListedObject, type NewObject, type ObjectInfo, Objects, ObjectStoreFullError } from './objects.js';
export type { PoisonRecord } from './poison.js';
export * from './target-status.js';
export type { ServiceNote } from './service-notes.js';
export { Signal, growingMs, pause, pipelined } from './signal.js';
export { type ReadOptions, StreamReader, lastOf, readAll } from './stream-reader.js';
export * from './topology.js';
export { type ViewEntry, listViews, newestViews, readNearbyView, readView, watchViews } from './views.js';
