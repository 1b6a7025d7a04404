import type { AddressInfo } from 'node:net';
import type { Logger } from './logger.js';

/** The checks of a process. Each answers with the reason if it fails, and undefined if all is well. */
export interface Health {
  /** Why only a restart would help. */
  readonly dead: () => string | undefined;
  /** Why the process cannot serve right now. */
  readonly unready: () => string | undefined;
}

export interface HealthServer {
  /** The port that it listens on: the requested one, or a free one if that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

const EVERY_ADDRESS = 'all';

/**
 * Answers `/healthz` and `/readyz` with 200, or with 503 and the reason, at one IP address or at `all`. Rejects if the
 * port is taken.
 */
export async function serveHealth(port: number, address: string, health: Health): Promise<HealthServer> {
  const checks: Readonly<Record<string, () => string | undefined>> = {
    '/healthz': health.dead,
    '/readyz': health.unready,
  };
  const { createServer } = await import('node:http');
  const server = createServer(({ url = '' }, answer) => {
    const check = checks[url.split('?', 1)[0] ?? ''];
    const why = check?.();
    answer.writeHead(check === undefined ? 404 : why === undefined ? 200 : 503, { 'content-type': 'text/plain' });
    answer.end(check === undefined ? 'use /healthz or /readyz\n' : `${why ?? 'ok'}\n`);
  });
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen({ port, ...(address === EVERY_ADDRESS ? {} : { host: address }) }, resolve),
  );
  // The health server alone does not keep a process running.
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Logs one line of figures every `everyMs`, so that the log alone shows how a process is doing. Returns a function that
 * stops it.
 */
export function logHealth(logger: Logger, everyMs: number, figures: () => object): () => void {
  if (everyMs === 0) return () => undefined;
  const timer = setInterval(
    () => logger.info({ ...figures(), rssBytes: process.memoryUsage.rss() }, 'health'),
    everyMs,
  );
  timer.unref();
  return () => clearInterval(timer);
}
