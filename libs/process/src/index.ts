export * from './health.js';
export * from './logger.js';
export * from './memory.js';
export { CONNECTION_SETTINGS, type ConnectFlags, type ConnectionKey } from './connection-settings.js';
export { readSettings, SettingsError, SWITCH, type Environment } from './setting.js';
export { SERVICE_SETTINGS, settingsFrom, type Settings } from './settings.js';
export * from './running-time.js';
export * from './time.js';
export { Turns } from './turns.js';
export {
  cacheHome,
  cachePath,
  findNatsServer,
  inPath,
  isAtLeast,
  isExecutable,
  OLDEST_NATS_SERVER,
  PINNED_NATS_SERVER,
} from './binaries.js';
export { buildOnce } from './build-once.js';
export { Guard } from './guard.js';
export {
  freePort,
  prepareNatsServer,
  waitForNatsServer,
  type NatsServerCommand,
  type NatsServerOptions,
} from './nats-server.js';
export { PROCESSES, Supervisor, type ChildSpec } from './supervisor.js';
