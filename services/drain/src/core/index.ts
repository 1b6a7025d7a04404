export { cordonWrite, uncordonWrite, wasTakenOff, type NodeCordon, type NodeWrite } from './cordon.js';
export { BURST_MS, Drains, RunningDrain, type DrainEffect } from './drains.js';
export { drainCore, REQUESTS, type Input, type DrainObservation as Sight } from './drain.js';
export {
  nameOf,
  namesOf,
  NAMED,
  planEvictions,
  refusedAgain,
  type Eviction,
  type EvictionPlan,
  type DrainPod,
  type Scene,
  type Try,
} from './eviction-plan.js';
export { pauseStep, pausersOf, unpauseWrite, type PausableState, type Pauser, type PauseWrite } from './pauses.js';
export { NodeReconciler, type EvictionResult, type ReconcileEffect } from './node-reconciler.js';
export { drainUnderWay, type Block, type Drain, type Progress, type State, type Strategy } from './state.js';
export { noteProgress } from './views.js';
