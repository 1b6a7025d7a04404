import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#libs/process';
import { until, startNatsServer, type NatsServer } from '#libs/testing';
import { Processes } from '../e2e/processes.js';

describe('the health of a service', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-health-'));
  let [health, bus] = [0, 0];
  let processes: Processes;
  let server: NatsServer | undefined;
  beforeAll(async () => {
    [health, bus] = [await freePort(), await freePort()];
    processes = new Processes(folder, {
      ...process.env,
      NATS_URL: `nats://127.0.0.1:${bus}`,
      SLUICE_HEALTH_PORT: String(health),
    });
    processes.start('merger', ['service', 'merger']);
  });
  afterAll(async () => {
    await processes.stopAll();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const get = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${health}${path}`);
    return `${answer.status} ${(await answer.text()).trim()}`;
  };
  const untilAnswer = (path: string, pattern: RegExp): Promise<unknown> =>
    until(async () => pattern.test(await get(path).catch(() => '')) || undefined, `${path} returns ${pattern}`);

  test('is alive but not ready without NATS, ready once it has read the ledger, and alive when NATS is gone', async () => {
    await untilAnswer('/healthz', /^200 ok$/);
    expect(await get('/readyz')).toBe('503 it is starting and waits for NATS');
    server = await startNatsServer({ dataDir: join(folder, 'nats'), port: bus });
    await untilAnswer('/readyz', /^200 ok$/);
    await server.stop();
    await untilAnswer('/readyz', /^503 it is not connected to NATS$/);
    expect(await get('/healthz')).toBe('200 ok');
    server = await startNatsServer({ dataDir: join(folder, 'nats'), port: bus });
    await untilAnswer('/readyz', /^200 ok$/);
  });
});
