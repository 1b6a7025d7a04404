import { serveHealth, type HealthServer } from './health.js';

describe('what a process says of its health', () => {
  let [dead, unready]: (string | undefined)[] = [];
  let server: HealthServer;
  beforeAll(async () => {
    server = await serveHealth(0, { dead: () => dead, unready: () => unready });
  });
  afterAll(() => server.close());
  const asked = async (path: string): Promise<readonly [number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return [answer.status, await answer.text()];
  };

  it('is 200 while all is well', async () => {
    expect([await asked('/healthz'), await asked('/readyz?verbose')]).toEqual([
      [200, 'ok\n'],
      [200, 'ok\n'],
    ]);
  });

  it('is 503 with the reason, of either by itself', async () => {
    unready = 'behind the ledger';
    expect([await asked('/healthz'), await asked('/readyz')]).toEqual([
      [200, 'ok\n'],
      [503, 'behind the ledger\n'],
    ]);
    [dead, unready] = ['the connection was closed for good', undefined];
    expect([await asked('/healthz'), await asked('/readyz')]).toEqual([
      [503, 'the connection was closed for good\n'],
      [200, 'ok\n'],
    ]);
    dead = undefined;
  });

  it('has no other page, and rejects a port that is taken', async () => {
    expect(await asked('/metrics')).toEqual([404, 'use /healthz or /readyz\n']);
    await expect(serveHealth(server.port, { dead: () => undefined, unready: () => undefined })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });
});
