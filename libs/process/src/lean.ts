// A second door, to what loads quickly: the CLI parses its command line with it, before it knows which command to load.
export { connectFlagsOf, connectionOptions } from './connection-flags.js';
export { LOG_LEVELS, type LogLevel } from './logger.js';
