// What loads quickly: the CLI parses its command line with it, before it knows which command to load.
export { connectFlagsOf, connectionOptions } from './connection-flags.js';
