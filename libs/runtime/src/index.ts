export * from './clocks.js';
export * from './health.js';
export * from './health-server.js';
export * from './logger.js';
export * from './nest-logger.js';
export * from './settings.js';
export * from './memory.js';
export * from './slices.js';
