import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootClock } from '../boot.js';
import { OpenFile } from '../open-file.js';
import { FileSystems } from '../backends/paths/file-systems.js';
import { RefusedError } from '../ports.js';
import { ProbeNetworks } from './probe-networks.js';
import { checkProbe, runProbes } from './run-probes.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-probe-'));
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(root, { recursive: true, force: true });
});

const surroundings = () => ({
  root,
  allowExec: false,
  probeNetworks: new ProbeNetworks(),
  fileSystems: new FileSystems(root),
  ending: new AbortController().signal,
});
const probe = (matches: string) => ({
  kind: 'Probe',
  name: 'p',
  spec: { file: { path: '/f', matches }, retries: 0 },
});
const runAt = (path: string, timeout: string, at = root) =>
  runProbes(
    [{ kind: 'Probe', name: 'p', spec: { file: { path, matches: 'x' }, timeout, retries: 0 } }],
    { ...surroundings(), root: at },
    bootClock() + 60_000,
    bootClock,
  );
const run = (matches: string) => runProbes([probe(matches)], surroundings(), bootClock() + 60_000, bootClock);

it('answers at once where a backtracking engine would delay the rollback', async () => {
  writeFileSync(join(root, 'f'), `${'a'.repeat(50)}!`);
  expect(await run('^(a+)+$')).toEqual([{ name: 'p', passed: false, reason: '/f does not match ^(a+)+$' }]);
  writeFileSync(join(root, 'f'), `!\n${'a'.repeat(50)}\n`);
  expect(await run('^(a+)+$')).toEqual([{ name: 'p', passed: true, reason: '' }]);
});

it('refuses a pattern that cannot be matched in linear time, names it, and says what to do', () => {
  expect(() => checkProbe(probe('(a)\\1'), surroundings())).toThrow(
    new RefusedError(
      'content',
      'file.matches: "(a)\\\\1" cannot be used (RE2 syntax): it uses a backreference, which RE2 does not have: write out what must be repeated',
    ),
  );
});

it('does not match a file that is too long for its pattern, which would delay the rollback', async () => {
  const pattern = '(a|b)*a(a|b){200}[x-z]';
  writeFileSync(join(root, 'f'), 'a'.repeat(1_000));
  expect(await run(pattern)).toMatchObject([{ reason: `/f does not match ${pattern}` }]);
  writeFileSync(join(root, 'f'), `${'a'.repeat(250)}x`.padEnd(1_048_576, 'ab'));
  expect(await run(pattern)).toMatchObject([
    {
      passed: false,
      reason: '/f is longer than 55188 bytes, too long for this pattern: use a shorter one, or smaller numbers in {}',
    },
  ]);
});

it('matches the longest file with a short pattern', async () => {
  writeFileSync(join(root, 'f'), 'ready\n'.padStart(1_048_576, 'line\n'));
  expect(await run('^ready: [0-9]+$|^ready$')).toMatchObject([{ passed: true }]);
});

it('ends with the time of all probes, however long their matches take, and is not to blame', async () => {
  writeFileSync(join(root, 'f'), 'a'.repeat(55_000));
  // Each match takes more than 10 million steps, so on no machine do so many end within 250 ms. The clock stands
  // still, so that a slow machine starts even the last one with all of its time.
  const many = Array.from({ length: 200 }, () => probe('(a|b)*a(a|b){200}[x-z]'));
  const now = bootClock();
  const results = await runProbes(many, surroundings(), now + 250, () => now);
  expect(results.at(-1)).toEqual({ name: 'p', passed: false, isCutShort: true, reason: '/f was not checked in time' });
});

it('needs no end of all probes, as while nothing changes', async () => {
  writeFileSync(join(root, 'f'), 'ready');
  expect(await runProbes([probe('ready')], surroundings(), Infinity, bootClock)).toMatchObject([{ passed: true }]);
});

it('does not read a file that has no end', async () => {
  expect(await runAt('/self/pagemap', '30s', '/proc')).toEqual([
    { name: 'p', passed: false, reason: '/self/pagemap is longer than 1048576 bytes' },
  ]);
});

it('fails a probe of a file whose read does not end, within the timeout of the probe', async () => {
  writeFileSync(join(root, 'f'), 'x');
  jest.spyOn(OpenFile.prototype, 'start').mockReturnValue(new Promise(() => undefined));
  expect(await runAt('/f', '100ms')).toEqual([{ name: 'p', passed: false, reason: '/f was not read in 100 ms' }]);
});

it('says what is at the path instead of a file', async () => {
  execFileSync('mkfifo', [join(root, 'f')]);
  expect(await runAt('/f', '30s')).toMatchObject([{ reason: '/f is neither a file, a directory nor a symbolic link' }]);
});
