import { roughDuration } from '#libs/manifests';
import { NOW } from '../fakes.fixture.js';
import { age } from '../output/table.js';
import { durationOf, isDuration, parseSince } from './times.js';
import { withWaitJoined } from './wait-flag.js';

test('durations are sums of numbers with units', () => {
  expect(['500ms', '30s', '10m', '1h30m', '1.5h', '2d'].map((text) => durationOf(text, '--wait'))).toEqual([
    500, 30_000, 600_000, 5_400_000, 5_400_000, 172_800_000,
  ]);
  expect(['', '10', 'm', '10x', '-1s'].filter(isDuration)).toEqual([]);
});

test('--since is a distance from now or a time', () => {
  expect(parseSince('10m', NOW).toISOString()).toBe('2026-11-21T09:50:00.000Z');
  expect(parseSince('2026-11-20T00:00:00Z', NOW).toISOString()).toBe('2026-11-20T00:00:00.000Z');
});

test('ages have their two greatest units', () => {
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
  expect(withWaitJoined(['delete', '--wait', 'File', 'motd'])).toEqual(['delete', '--wait=10m', 'File', 'motd']);
  expect(withWaitJoined(['apply', '--wait', '5m', '-f', 'x'])).toEqual(['apply', '--wait=5m', '-f', 'x']);
  expect(withWaitJoined(['apply', '--wait=30s', '--', '--wait'])).toEqual(['apply', '--wait=30s', '--', '--wait']);
});
