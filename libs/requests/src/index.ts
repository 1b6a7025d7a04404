export * from './config-requests.js';
export * from './forms.js';
export * from './known-bad-requests.js';
export * from './node-requests.js';
export * from './pool-requests.js';
export * from './request-reader.js';
export * from './rollout-requests.js';
