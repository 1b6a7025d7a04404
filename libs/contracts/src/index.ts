export * from './config.js';
export * from './enums.js';
export * from './facts.js';
export * from './names.js';
export * from './streams.js';
export * from './subjects.js';
export * from './views.js';
export * from './wire.js';
