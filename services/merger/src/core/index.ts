export { mergerCore } from './merger.js';
export { areTargetsNamed, namedConfigs } from './named.js';
export { planChange } from './plan.js';
export { renderChange, renderNodes } from './rendering.js';
export type { Gathered, Input, RenderNeed, Request } from './inputs.js';
export type { State } from './state.js';
