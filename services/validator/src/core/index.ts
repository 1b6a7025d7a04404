export { validatorCore } from './validator.js';
export type { Input, Request, ReviewNeed, ReviewResult } from './inputs.js';
export type { State } from './state.js';
