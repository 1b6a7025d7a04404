export * from './bounded-reasons.js';
export * from './config-review.js';
export * from './known-bad.js';
export * from './merged-reasons.js';
