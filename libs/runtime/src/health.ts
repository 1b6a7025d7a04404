import type { Logger } from './logger.js';

/** Logs one line of figures every `everyMs`, so that a log alone tells how a process fares. Returns how to stop it. */
export function logHealth(logger: Logger, everyMs: number, figures: () => object): () => void {
  if (everyMs === 0) return () => undefined;
  const timer = setInterval(
    () => logger.info({ ...figures(), rssBytes: process.memoryUsage.rss() }, 'health'),
    everyMs,
  );
  timer.unref();
  return () => clearInterval(timer);
}
