export * from './advance.js';
export * from './journal.js';
export * from './leases.js';
export * from './next-step.js';
export * from './ownership.js';
export { entriesWithObject } from './plan.js';
export * from './ports.js';
export * from './run.js';
export * from './state.js';
