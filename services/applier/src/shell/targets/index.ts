// Another way in, for appliers that work for targets elsewhere. What they need would cost each machine memory.
export { clusterTarget, type Cluster } from '../clusters/cluster-target.js';
export { fleetTarget, type OtherFleet } from '../fleets/fleet-target.js';
export { functionTarget, type FunctionReplica, type Timing } from '../functions/function-target.js';
export { serveTargets, type ServedTargets } from './serve-targets.js';
export type { Target } from './run-target.js';
