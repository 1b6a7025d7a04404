export { schedulerCore } from './scheduler.js';
export {
  REQUESTS,
  type GatherResult as Gathered,
  type Input,
  type Plan,
  type PlanNeed,
  type SchedulerNeed,
} from './inputs.js';
export type { State } from './state.js';
