import type { LoggerService } from '@nestjs/common';
import type { Logger } from './logger.js';

/** Nest's own words (which module was loaded, which route was mapped) through the project's logger. */
export function nestLogger(logger: Logger): LoggerService {
  const fields = (rest: readonly unknown[]): object => {
    const context = rest.findLast((part) => typeof part === 'string');
    return context === undefined ? {} : { context };
  };
  const text = (message: unknown): string =>
    message instanceof Error ? (message.stack ?? message.message) : String(message);
  return {
    log: (message: unknown, ...rest: unknown[]) => logger.debug(fields(rest), text(message)),
    debug: (message: unknown, ...rest: unknown[]) => logger.debug(fields(rest), text(message)),
    verbose: (message: unknown, ...rest: unknown[]) => logger.debug(fields(rest), text(message)),
    warn: (message: unknown, ...rest: unknown[]) => logger.warn(fields(rest), text(message)),
    error: (message: unknown, ...rest: unknown[]) => logger.error(fields(rest), text(message)),
    fatal: (message: unknown, ...rest: unknown[]) => logger.error(fields(rest), text(message)),
  };
}
