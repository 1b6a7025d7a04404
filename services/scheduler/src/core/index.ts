export { schedulerCore } from './scheduler.js';
export type { Input, Plan, PlanNeed, Request } from './inputs.js';
export type { State } from './state.js';
