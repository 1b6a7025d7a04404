export { BINDINGS_SOURCE, wantedValues, type WantedValues } from './bindings.js';
export { changesOf, newValuesOf, type NewValues } from './value-changes.js';
export { mergerCore } from './merger.js';
export { NAMES_SOURCE, wantedNames, type WantedName, type WantedNames } from './names.js';
export { planChange } from './plan.js';
export { areTargetsReferenced, referencedConfigs, referencedObjects } from './references.js';
export { publishedInput, type GatherResult, type Input, type RenderNeed, type Request } from './inputs.js';
export { stateBefore, whyNoRetry } from './state-before.js';
export type { State } from './state.js';
