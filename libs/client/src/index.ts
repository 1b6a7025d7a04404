export { connectFleet, NoConnectionError, OpsError, type FleetClient } from './fleet.js';
export type { ListedObject, NewObject, ObjectInfo } from '#libs/nats/lean';
export type { FleetEvent } from './fleet-events.js';
export type { Inspection } from './fleet-inspection.js';
export { connectNodeBus, type NodeBus, type NodePush } from './node-bus.js';
