export * from './nats-fixture.js';
export * from './until.js';
export * from './fact-builders.js';
export * from './ledger-fixture.js';
export * from './state-picture.js';
export * from './tcp-proxy.js';
export * from './kube/index.js';
export * from './vm/index.js';
