export * from './action-order.js';
export * from './action-plan.js';
export * from './effective-policy.js';
export * from './policy-rows.js';
