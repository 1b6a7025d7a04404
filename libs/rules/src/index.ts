export { kindIn, outcomeOfReview, withHolders, type Touched, type WaitingChange } from './review/missing-references.js';
export {
  boundFieldsOf,
  isHeldBack,
  MISSING_VALUE,
  type BoundNode,
  type BoundValues,
  type CompiledBinding,
} from './rendering/bound-texts.js';
export * from './rendering/canonical-json.js';
export * from './rendering/compiled.js';
export * from './rendering/rendered-node.js';
export * from './actions/action-plan.js';
export * from './actions/drift-plan.js';
export * from './actions/effective-policy.js';
export * from './actions/policy-rows.js';
export * from './review/bounded-reasons.js';
export * from './review/config-review.js';
export * from './review/failing-probes.js';
export * from './review/known-bad.js';
export * from './review/merged-reasons.js';
export * from './budget.js';
export * from './carried-policies.js';
