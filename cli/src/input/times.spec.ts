import { parseDuration, roughDuration } from '#libs/manifests';
import { NOW } from '../fakes.fixture.js';
import { age } from '../output/table.js';
import { durationOf, parseSince } from './times.js';
import { withWaitJoined } from './wait-flag.js';

test('durations are sums of numbers with units', () => {
  expect(['500ms', '30s', '10m', '1h30m', '1.5h', '2d'].map((text) => durationOf(text, '--wait'))).toEqual([
    500, 30_000, 600_000, 5_400_000, 5_400_000, 172_800_000,
  ]);
  expect(['', '10', 'm', '10x', '-1s'].flatMap((text) => parseDuration(text) ?? [])).toEqual([]);
});

test('durations that no timer can wait, or that no service accepts, are refused with the limit', () => {
  expect(durationOf('168h', '--wait')).toBe(604_800_000);
  expect(() => durationOf('600h', '--wait')).toThrow('--wait: 600h is too long: use at most 168h');
  expect(() => durationOf('1000h', '--for', 1_000)).toThrow('--for: 1000h is too long: use 1s to 168h');
  expect(() => durationOf('10ms', '--for', 1_000)).toThrow('--for: 10ms is too short: use 1s to 168h');
});

test('--since is a duration before now, or a time', () => {
  expect(parseSince('10m', NOW).toISOString()).toBe('2026-11-21T09:50:00.000Z');
  expect(parseSince('2026-11-20T00:00:00Z', NOW).toISOString()).toBe('2026-11-20T00:00:00.000Z');
  for (const text of ['yesterday', '999999999999d']) expect(() => parseSince(text, NOW)).toThrow(/neither a duration/);
});

test('ages show their two largest units', () => {
  expect([0, 119_000, 130_000, 1_860_000, 7_300_000, 86_400_000 * 2 + 3_600_000 * 4].map(roughDuration)).toEqual([
    '0s',
    '119s',
    '2m10s',
    '31m',
    '2h1m',
    '2d4h',
  ]);
  expect(age('', NOW)).toBe('');
});

test('--wait takes a value only if one follows', () => {
  expect(withWaitJoined(['delete', '--wait', 'File', 'motd'], ['kind', 'name'])).toEqual([
    'delete',
    '--wait=10m',
    'File',
    'motd',
  ]);
  expect(withWaitJoined(['apply', '--wait', '5m', '-f', 'x'], [])).toEqual(['apply', '--wait=5m', '-f', 'x']);
  expect(withWaitJoined(['apply', '--wait', '5x', '-f', 'x'], [])).toEqual(['apply', '--wait=5x', '-f', 'x']);
  expect(withWaitJoined(['apply', '--wait=30s', '--', '--wait'], [])).toEqual(['apply', '--wait=30s', '--', '--wait']);
  const next = (args: readonly string[], word: string) => withWaitJoined(['--wait', word], args)[0];
  expect(['abc', 'c7', '-f'].map((word) => next([], word))).toEqual(['--wait=abc', '--wait=c7', '--wait=10m']);
  expect(['abc', 'c7'].map((word) => next(['change'], word))).toEqual(['--wait=abc', '--wait=10m']);
});
