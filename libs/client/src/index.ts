export { connectFleet, fleetOn, NoConnectionError, OpsError, type FleetClient, type FleetOptions } from './fleet.js';
export type { ListedObject, NewObject, ObjectInfo } from '#libs/nats/lean';
export type { FleetEvent } from './fleet-events.js';
export type { Inspection } from './fleet-inspection.js';
export { connectNodeBus, type NodeBus, type NodePush, type WorkAnswer } from './node-bus.js';
