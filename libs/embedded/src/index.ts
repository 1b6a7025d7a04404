export { findNatsCli, findNatsServer, whyNoNatsCli, PINNED_NATS_SERVER, type FindOptions } from './binaries.js';
export { buildOnce } from './build-once.js';
export { freePort } from './free-port.js';
export { Guard } from './guard.js';
export {
  prepareNatsServer,
  waitForNatsServer,
  type NatsServerCommand,
  type NatsServerOptions,
} from './nats-server-command.js';
export { startNatsServer, type NatsServer } from './nats-server.js';
export { PROCESSES } from './processes.js';
export { Supervisor, type ChildSpec } from './supervisor.js';
