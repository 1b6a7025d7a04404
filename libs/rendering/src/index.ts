export * from './canonical-json.js';
export * from './compiled.js';
export * from './rendered-node.js';
