import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootClock } from '../boot.js';
import { RefusedError } from '../ports.js';
import { checkProbe, runProbes } from './run-probes.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-probe-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const surroundings = () => ({ root, allowExec: false, ending: new AbortController().signal });
const probe = (matches: string) => ({
  kind: 'Probe',
  name: 'p',
  spec: { file: { path: '/f', matches }, retries: 0 },
});
const run = (matches: string) => runProbes([probe(matches)], surroundings(), bootClock() + 60_000, bootClock);

it('answers at once where a backtracking engine would keep the applier from rolling back', async () => {
  writeFileSync(join(root, 'f'), `${'a'.repeat(50)}!`);
  expect(await run('^(a+)+$')).toEqual([{ name: 'p', passed: false, reason: '/f does not match ^(a+)+$' }]);
  writeFileSync(join(root, 'f'), `!\n${'a'.repeat(50)}\n`);
  expect(await run('^(a+)+$')).toEqual([{ name: 'p', passed: true, reason: '' }]);
});

it('refuses a pattern that it cannot match in linear time, names it, and says what to do', () => {
  expect(() => checkProbe(probe('(a)\\1'), surroundings())).toThrow(
    new RefusedError(
      'content',
      'file.matches: "(a)\\\\1" cannot be used (RE2 syntax): it uses a backreference, which RE2 does not have: write out what must be repeated',
    ),
  );
});
