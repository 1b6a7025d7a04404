export { mergerCore } from './merger.js';
export { planChange } from './plan.js';
export { areTargetsNamed, namedConfigs } from './named.js';
export { publishedInput, type GatherResult, type Input, type RenderNeed, type Request } from './inputs.js';
export type { State } from './state.js';
