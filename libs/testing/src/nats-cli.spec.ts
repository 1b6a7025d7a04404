import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findNatsCli } from './nats-cli.js';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'sluice-find-'));
});
afterEach(() => rmSync(home, { recursive: true }));

function fake(path: string, script: string): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

test('findNatsCli tries SLUICE_NATS_CLI, then PATH, then the cache', async () => {
  const named = fake('named', 'true');
  const cached = fake('.cache/sluice/nats-0.3.0/nats', 'true');
  expect(await findNatsCli({ HOME: home, PATH: '' })).toBe(cached);
  const inPath = fake('bin/nats', 'true');
  expect(await findNatsCli({ HOME: home, PATH: join(home, 'bin') })).toBe(inPath);
  expect(await findNatsCli({ HOME: home, PATH: join(home, 'bin'), SLUICE_NATS_CLI: named })).toBe(named);
});
