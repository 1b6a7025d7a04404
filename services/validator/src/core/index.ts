export { validatorCore } from './validator.js';
export { reviewNodes, reviewTargets, type Material } from './review.js';
export type { Input, Request, ReviewNeed, Reviewed } from './inputs.js';
export type { State } from './state.js';
