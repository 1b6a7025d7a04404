export { schedulerCore } from './scheduler.js';
export { REQUESTS, type Gathered, type Input, type Plan, type PlanNeed, type SchedulerNeed } from './inputs.js';
export type { State } from './state.js';
