export * from './elements.js';
export * from './entries.js';
export { isNetworkEntry, NETWORK_KINDS } from './fragments.js';
export * from './needs.js';
export { networkOf } from './network.js';
export * from './network-review.js';
