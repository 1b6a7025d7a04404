import type { DestinationStream } from 'pino';

/** A logger takes fields first, then a sentence. `change`, `node` and `lease` are fields. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  readonly level?: LogLevel;
  /** Default: stderr, because stdout is for data. */
  readonly destination?: DestinationStream;
}

/** A logger that writes one JSON object per line, with `name` in each. */
export function createLogger(name: string, options: LoggerOptions = {}): Logger {
  const { pino } = require('pino');
  return pino(
    {
      name,
      level: options.level ?? 'info',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      base: { pid: process.pid },
      serializers: { error: pino.stdSerializers.err },
    },
    options.destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

/** Loaded with the first logger: most commands log nothing. */
declare const require: (name: 'pino') => typeof import('pino');

/** A logger that writes nothing. */
export const SILENT: Logger = { debug: noop, info: noop, warn: noop, error: noop };

function noop(): void {}
