import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard } from './guard.js';

test('a guarded process ends when its parent is killed with kill -9', async () => {
  const child = spawn('sleep', ['60'], { detached: true });
  const holder = spawn(process.execPath, [
    '-e',
    `
    const { Guard } = require(${JSON.stringify(await compiledGuard())});
    new Guard().watch([${child.pid}]); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 200); setInterval(() => {}, 1000);
  `,
  ]);
  await new Promise((resolve) => holder.once('exit', resolve));
  await new Promise((resolve) => (child.signalCode === null ? child.once('exit', resolve) : resolve(undefined)));
  expect(child.signalCode).toBe('SIGTERM');
});

test('a guarded process that ignores the signal to end is killed, even after another one has ended', async () => {
  const deaf = spawn('/bin/sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 0.1; done'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await new Promise((resolve) => deaf.stdout.once('data', resolve));
  const quick = spawn('sleep', ['60'], { detached: true });
  const holder = spawn(process.execPath, [
    '-e',
    `
    const { Guard } = require(${JSON.stringify(await compiledGuard())});
    new Guard().watch([${deaf.pid}, ${quick.pid}]); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 200); setInterval(() => {}, 1000);
  `,
  ]);
  await new Promise((resolve) => holder.once('exit', resolve));
  await new Promise((resolve) => (deaf.signalCode === null ? deaf.once('exit', resolve) : resolve(undefined)));
  expect([quick.signalCode, deaf.signalCode]).toEqual(['SIGTERM', 'SIGKILL']);
});

test('a closed guard does not end the process', async () => {
  const child = spawn('sleep', ['60']);
  const guard = new Guard();
  guard.watch([child.pid as number]);
  guard.close();
  await sleep(300);
  expect(() => execFileSync('kill', ['-0', String(child.pid)])).not.toThrow();
  child.kill();
});

/** The guard as JavaScript, to run it in its own process. */
async function compiledGuard(): Promise<string> {
  const { transformFileSync } = await import('@swc/core');
  const { writeFileSync } = await import('node:fs');
  const file = join(mkdtempSync(join(tmpdir(), 'sluice-guard-')), 'guard.cjs');
  writeFileSync(
    file,
    transformFileSync(join(__dirname, 'guard.ts'), {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'commonjs' },
    }).code,
  );
  return file;
}
