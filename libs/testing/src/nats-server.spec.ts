import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startNatsServer } from './nats-server.js';

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('data', () => resolve(socket.destroy().destroyed));
    socket.once('error', () => resolve(false));
  });

test('accepts connections when started, survives kill and restart on the same port, and is gone after stop', async () => {
  const server = await startNatsServer();
  expect(await answers(server.port)).toBe(true);
  expect(existsSync(join(server.dataDir, 'jetstream'))).toBe(true);
  const before = server.pid;
  server.kill();
  while (await answers(server.port)) await sleep(10);
  await server.restart();
  expect(server.pid).not.toBe(before);
  expect(await answers(server.port)).toBe(true);
  await server.stop();
  expect(await answers(server.port)).toBe(false);
  expect(existsSync(server.dataDir)).toBe(false);
});

test('refuses a port that another server uses, with the error of nats-server', async () => {
  const first = await startNatsServer();
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-nats-'));
  await expect(startNatsServer({ dataDir, port: first.port })).rejects.toThrow(
    /belongs to another server[^]*address already in use/,
  );
  await first.stop();
  rmSync(dataDir, { recursive: true });
});
