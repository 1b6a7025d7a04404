export * from './core.js';
export * from './cycle.js';
export * from './table.js';
export * from './draft.js';
export * from './migration.js';
export * from './steps.js';
