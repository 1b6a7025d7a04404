import { serveHealth, type HealthServer } from './health.js';

describe('the health of a process', () => {
  let [dead, unready]: (string | undefined)[] = [];
  let server: HealthServer;
  beforeAll(async () => {
    server = await serve('127.0.0.1');
  });
  afterAll(() => server.close());
  const serve = (address: string): Promise<HealthServer> =>
    serveHealth(0, address, { dead: () => dead, unready: () => unready });
  const get = async (path: string): Promise<readonly [number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return [answer.status, await answer.text()];
  };

  it('is 200 while all is well', async () => {
    expect([await get('/healthz'), await get('/readyz?verbose')]).toEqual([
      [200, 'ok\n'],
      [200, 'ok\n'],
    ]);
  });

  it('is 503 with the reason if either check fails', async () => {
    unready = 'behind the ledger';
    expect([await get('/healthz'), await get('/readyz')]).toEqual([
      [200, 'ok\n'],
      [503, 'behind the ledger\n'],
    ]);
    [dead, unready] = ['the connection was closed for good', undefined];
    expect([await get('/healthz'), await get('/readyz')]).toEqual([
      [503, 'the connection was closed for good\n'],
      [200, 'ok\n'],
    ]);
    dead = undefined;
  });

  it('is served only at the configured address', async () => {
    const [local, everywhere] = [await serve('127.0.0.2'), await serve('all')];
    const askedAt = (host: string, { port }: HealthServer): Promise<unknown> =>
      fetch(`http://${host}:${port}/healthz`).then(
        ({ status }) => status,
        () => 'no answer',
      );
    expect([await askedAt('127.0.0.2', local), await askedAt('127.0.0.1', local)]).toEqual([200, 'no answer']);
    expect([await askedAt('127.0.0.2', everywhere), await askedAt('127.0.0.1', everywhere)]).toEqual([200, 200]);
    await Promise.all([local.close(), everywhere.close()]);
  });

  it('has no other page, and starting it fails if the port is taken', async () => {
    expect(await get('/metrics')).toEqual([404, 'use /healthz or /readyz\n']);
    await expect(
      serveHealth(server.port, '127.0.0.1', { dead: () => undefined, unready: () => undefined }),
    ).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });
});
