import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a process says of itself when it is asked; each answer is why not, or undefined when all is well. */
export interface Health {
  /** Why only a restart would help. */
  readonly dead: () => string | undefined;
  /** Why it would not be of use at this moment. */
  readonly unready: () => string | undefined;
}

export interface HealthServer {
  /** Where it listens; what was asked for, unless that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

/** Answers `/healthz` and `/readyz` with 200, or with 503 and the reason: for whoever looks after the process. Rejects where the port is taken. */
export async function serveHealth(port: number, health: Health): Promise<HealthServer> {
  const checks: Readonly<Record<string, () => string | undefined>> = {
    '/healthz': health.dead,
    '/readyz': health.unready,
  };
  const server = createServer(({ url = '' }, answer) => {
    const check = checks[url.split('?', 1)[0] ?? ''];
    const why = check?.();
    answer.writeHead(check === undefined ? 404 : why === undefined ? 200 : 503, { 'content-type': 'text/plain' });
    answer.end(check === undefined ? 'there are /healthz and /readyz\n' : `${why ?? 'ok'}\n`);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, resolve));
  // It is no reason to go on for a process that has nothing else to do.
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
