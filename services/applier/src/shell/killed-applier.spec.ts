import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MemoryNodeBus } from '../testing/memory-node-bus.js';
import { config, file, Host, probe } from './applier-host.fixture.js';
import { bootClock } from './boot.js';
import { hashOf, runApplier } from './index.js';
import { decodeJournal } from './state/journal-text.js';

const FIRST = config(file('/etc/a', 'old'), file('/b', 'old'));
const SECOND = config(file('/etc/a', 'new', '0600'), file('/new/c', 'new'), probe('p', { file: { path: '/etc/a', matches: '^(old|new)' } }));
const OLD = { b: '644 old', etc: 'dir 755', 'etc/a': '644 old' };
const NEW = { b: '600 mine', etc: 'dir 755', 'etc/a': '600 new', new: 'dir 755', 'new/c': '644 new' };

/** Runs the process that kills itself; says whether it did. */
function run(host: Host, dieAt: number, dieAfterMs: number): Promise<boolean> {
  const testing = join(__dirname, '../testing');
  const plan = { root: host.root, state: host.state, first: FIRST, second: SECOND, dieAt, dieAfterMs };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(testing, 'run-ts.cjs'), join(testing, 'killed-applier.ts'), JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    child.on('exit', (code, signal) => (code === 0 || signal === 'SIGKILL' ? resolve(signal === 'SIGKILL') : reject(new Error(`exit ${code}: ${said}`))));
  });
}

const journalOf = (host: Host) => {
  const journal = decodeJournal(readFileSync(join(host.state, 'journal.json'), 'utf8'));
  if (typeof journal === 'string') throw new Error(journal);
  return journal;
};

/** Starts again where the killed process stood, with no bus at all, and waits until nothing is unfinished. */
async function recover(host: Host, aheadMs: number): Promise<void> {
  const bus = new MemoryNodeBus('n');
  bus.down = true;
  const applier = await runApplier({
    node: 'n', labels: {}, root: host.root, stateDir: host.state, bus, clock: () => bootClock() + aheadMs,
  });
  try {
    for (let i = 0; i < 500 && journalOf(host).work !== undefined; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  } finally {
    await applier.stop();
  }
}

it.each([
  [5, 0], [9, 0], [10, 0], [11, 0], [11, 1], [12, 0], [12, 2], [13, 0], [13, 1], [14, 0], [15, 0], [15, 1], [16, 0],
])('killed at step %i (%i ms into it), it ends on the old or the new config without any bus', async (dieAt, dieAfterMs) => {
  for (const aheadMs of [0, 3_600_000]) {
    const host = new Host();
    try {
      writeFileSync(host.path('b'), 'mine', { mode: 0o600 });
      const killed = await run(host, dieAt, dieAfterMs);
      if (dieAfterMs === 0) expect(killed).toBe(true);
      const begun = journalOf(host).work !== undefined;
      await recover(host, aheadMs);
      const { inForce, work, lastDealt } = journalOf(host);
      expect(work).toBeUndefined();
      expect(host.tree()).toEqual(inForce === hashOf(SECOND) ? NEW : OLD);
      if (begun) expect(lastDealt).toMatchObject({ lease: 'l2', verdict: aheadMs === 0 ? 'applied' : 'failed' });
    } finally {
      await host.end();
    }
  }
});
