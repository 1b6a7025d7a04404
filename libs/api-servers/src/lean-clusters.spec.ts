import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whyNoKubeBinaries } from './binaries.js';
import { LeanClusters } from './lean-clusters.js';

const why = process.env['SLUICE_NO_KUBE'] === undefined ? whyNoKubeBinaries() : 'SLUICE_NO_KUBE is set';

/** The command lines of all processes that work in a folder. */
function processesIn(folder: string): readonly string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  return pids.flatMap((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return line.includes(folder) ? [line] : [];
    } catch {
      return [];
    }
  });
}

(why === undefined ? test : test.skip)('if one of several cannot be started, no process is left', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lean-'));
  // The first one fails at once, while the second one is being started.
  mkdirSync(join(folder, 'c0'));
  await expect(LeanClusters.start(2, { folder })).rejects.toThrow('EEXIST');
  expect(processesIn(folder)).toEqual([]);
});
