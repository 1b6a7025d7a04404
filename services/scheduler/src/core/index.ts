export { schedulerCore } from './scheduler.js';
export { REQUESTS, type Input, type Plan, type PlanNeed } from './inputs.js';
export type { State } from './state.js';
