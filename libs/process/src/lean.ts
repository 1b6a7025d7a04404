// A second entry point, for what loads quickly. The CLI uses it to parse its command line before it knows which command
// to load.
export { connectFlagsOf, connectionOptions } from './connection-flags.js';
export { LOG_LEVELS, type LogLevel } from './logger.js';
