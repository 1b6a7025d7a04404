import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Supervisor } from './supervisor.js';

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const sleeper = (name: string) => ({ name, command: 'sleep', args: ['60'] });

test('a process that dies is started again, and onChange receives the new pid', async () => {
  const seen: Readonly<Record<string, number>>[] = [];
  const supervisor = new Supervisor({ onChange: (pids) => seen.push(pids), firstPauseMs: 20 });
  supervisor.add(sleeper('a'));
  supervisor.add(sleeper('b'));
  const first = supervisor.pids;
  process.kill(first['a'] as number, 'SIGKILL');
  while (supervisor.pids['a'] === undefined || supervisor.pids['a'] === first['a']) await sleep(10);
  expect(supervisor.pids['b']).toBe(first['b']);
  expect(seen.at(-1)).toEqual(supervisor.pids);
  await supervisor.stop();
});

test('the pause between tries grows to its limit', async () => {
  const pauses: number[] = [];
  const supervisor = new Supervisor({
    onDeath: (_name, _how, againInMs) => pauses.push(againInMs),
    firstPauseMs: 10,
    longestPauseMs: 40,
  });
  supervisor.add({ name: 'a', command: 'false', args: [] });
  while (pauses.length < 5) await sleep(10);
  await supervisor.stop();
  expect(pauses.slice(0, 5)).toEqual([10, 20, 40, 40, 40]);
});

test('a process that stayed up long enough is restarted quickly again', async () => {
  const pauses: number[] = [];
  const supervisor = new Supervisor({
    onDeath: (_name, _how, againInMs) => pauses.push(againInMs),
    firstPauseMs: 10,
    steadyMs: 100,
  });
  supervisor.add({ name: 'a', command: 'sleep', args: ['0.2'] });
  while (pauses.length < 3) await sleep(10);
  await supervisor.stop();
  expect(pauses.slice(0, 3)).toEqual([10, 10, 10]);
});

test('a program that does not exist is reported as ended', async () => {
  const deaths: string[] = [];
  const supervisor = new Supervisor({ onDeath: (name, how) => deaths.push(`${name}: ${how}`) });
  supervisor.add({ name: 'a', command: '/nowhere/at-all', args: [] });
  while (deaths.length === 0) await sleep(10);
  await supervisor.stop();
  expect(deaths[0]).toMatch(/a: spawn .*ENOENT/);
});

test('stop ends all processes, the last ones last, and kills one that ignores the signal within 10 s', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-super-'));
  const log = join(folder, 'log');
  writeFileSync(log, '');
  const shell = (name: string, script: string, endsLast = false) => ({
    name,
    command: 'sh',
    args: ['-c', script],
    logFile: log,
    endsLast,
  });
  const supervisor = new Supervisor();
  supervisor.add(shell('server', 'trap "echo server; exit" TERM; echo up; while :; do sleep 0.05; done', true));
  supervisor.add(shell('client', 'trap "sleep 0.3; echo client; exit" TERM; echo up; while :; do sleep 0.05; done'));
  supervisor.add(shell('deaf', 'trap "" TERM; echo up; while :; do sleep 0.05; done'));
  while (readFileSync(log, 'utf8') !== 'up\nup\nup\n') await sleep(20);
  const pids = Object.values(supervisor.pids);
  const timers = jest.spyOn(global, 'setTimeout');
  await supervisor.stop();
  // How long it waits, first for all but the last ones, and then for those. How long it took depends on the machine.
  const waits = new Set(timers.mock.calls.map(([, ms]) => ms ?? 0));
  timers.mockRestore();
  expect(waits.size).toBe(2);
  expect([...waits].reduce((sum, ms) => sum + ms, 0)).toBeLessThan(10_000);
  expect(pids.filter(isAlive)).toEqual([]);
  expect(readFileSync(log, 'utf8').split('\n').slice(3, 5)).toEqual(['client', 'server']);
  rmSync(folder, { recursive: true });
});
