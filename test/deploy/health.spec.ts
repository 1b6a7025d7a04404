import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#libs/process';
import { until, startNatsServer, type NatsServer } from '#libs/testing';
import { Processes } from '../e2e/processes.js';

describe('a service that is asked how it is', () => {
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
  const asked = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${health}${path}`);
    return `${answer.status} ${(await answer.text()).trim()}`;
  };
  const says = (path: string, words: RegExp): Promise<unknown> =>
    until(async () => words.test(await asked(path).catch(() => '')) || undefined, `${path} says ${words}`, 60_000);

  test('lives and is not ready without a bus, is ready once it has read the ledger, and lives on when the bus is gone', async () => {
    await says('/healthz', /^200 ok$/);
    expect(await asked('/readyz')).toBe('503 it is starting and waits for NATS');
    server = await startNatsServer({ dataDir: join(folder, 'nats'), port: bus });
    await says('/readyz', /^200 ok$/);
    await server.stop();
    await says('/readyz', /^503 it is not connected to NATS$/);
    expect(await asked('/healthz')).toBe('200 ok');
    server = await startNatsServer({ dataDir: join(folder, 'nats'), port: bus });
    await says('/readyz', /^200 ok$/);
  }, 120_000);
});
