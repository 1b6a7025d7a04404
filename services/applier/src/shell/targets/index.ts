// Another way in, for appliers that work for targets elsewhere. What they need would cost each machine memory.
export { BoundObjects } from '../clusters/bound-objects.js';
export type { HubOwner, OnHub } from '../clusters/cluster-kinds.js';
export { clusterTarget, hubOf, type Cluster, type Hub } from '../clusters/cluster-target.js';
export { fleetTarget, type OtherFleet } from '../fleets/fleet-target.js';
export { functionTarget, type FunctionReplica, type Timing } from '../functions/function-target.js';
export { CALL_TIMEOUT_MS } from './target-storage.js';
export { serveTargets, type ServedTargets } from './serve-targets.js';
export type { Target } from './run-target.js';
