export { validatorCore } from './validator.js';
export { REQUESTS, type Input, type ReviewNeed, type ReviewResult } from './inputs.js';
export type { State } from './state.js';
