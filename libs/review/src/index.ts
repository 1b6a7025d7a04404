export * from './config-review.js';
export * from './merged-reasons.js';
