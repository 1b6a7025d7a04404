import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { FakeMachine } from '../testing/fake-machine.js';
import { MemoryNodeBus } from '../testing/memory-node-bus.js';
import { config, file, Host, probe } from './applier-host.fixture.js';
import { bootClock } from './boot.js';
import { hashOf, runApplier, type HostSettings } from './index.js';
import { decodeJournal } from './state/journal-text.js';

const FIRST = config(file('/etc/a', 'old'), file('/b', 'old'));
const SECOND = config(
  file('/etc/a', 'new', '0600'),
  file('/new/c', 'new'),
  probe('p', { file: { path: '/etc/a', matches: '^(old|new)' } }),
);
const OLD = { b: '600 old', etc: 'dir 755', 'etc/a': '644 old' };
const NEW = { b: '600 mine', etc: 'dir 755', 'etc/a': '600 new', new: 'dir 755', 'new/c': '644 new' };

/** Longer than a busy machine takes to start the next process, and over when the clock is an hour ahead. */
const APPLY_MS = 600_000;

/** Runs the process that kills itself. Returns whether it did. */
function run(
  host: Host,
  dieAt: number,
  dieAfterMs: number,
  what: object = { first: FIRST, second: SECOND, actions: [], host: {} },
): Promise<boolean> {
  const testing = join(__dirname, '../testing');
  const plan = { root: host.root, state: host.state, dieAt, dieAfterMs, applyMs: APPLY_MS, ...what };
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [join(testing, 'run-ts.cjs'), join(testing, 'killed-applier.ts'), JSON.stringify(plan)],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('exit', (code, signal) =>
      code === 0 || signal === 'SIGKILL' ? resolve(signal === 'SIGKILL') : reject(new Error(`exit ${code}: ${output}`)),
    );
  });
}

const journalOf = (host: Host) => {
  const journal = decodeJournal(readFileSync(join(host.state, 'journal.json'), 'utf8'));
  if (typeof journal === 'string') throw new Error(journal);
  return journal;
};

/** Restarts the killed process, without NATS, and waits until nothing is unfinished. */
async function recover(host: Host, aheadMs: number, settings: HostSettings = {}): Promise<void> {
  const bus = new MemoryNodeBus('n');
  bus.down = true;
  const applier = await runApplier({
    node: 'n',
    labels: {},
    root: host.root,
    stateDir: host.state,
    bus,
    host: settings,
    clock: () => bootClock() + aheadMs,
  });
  try {
    await until(() => journalOf(host).work === undefined, 'no work is left in the journal');
  } finally {
    await applier.stop();
  }
}

it.each([
  [5, 0],
  [9, 0],
  [10, 0],
  [11, 0],
  [11, 1],
  [12, 0],
  [12, 2],
  [13, 0],
  [13, 1],
  [14, 0],
  [15, 0],
  [15, 1],
  [16, 0],
])(
  'killed at step %i (%i ms into it), it ends with the old or the new config, without NATS',
  async (dieAt, dieAfterMs) => {
    for (const aheadMs of [0, 3_600_000]) {
      const host = new Host();
      try {
        writeFileSync(host.path('b'), 'mine', { mode: 0o600 });
        const killed = await run(host, dieAt, dieAfterMs);
        if (dieAfterMs === 0) expect(killed).toBe(true);
        const hasWork = journalOf(host).work !== undefined;
        await recover(host, aheadMs);
        const { inForce, work, lastDealt } = journalOf(host);
        expect(work).toBeUndefined();
        expect(host.tree()).toEqual(inForce === hashOf(SECOND) ? NEW : OLD);
        if (hasWork) expect(lastDealt).toMatchObject({ lease: 'l2', verdict: aheadMs === 0 ? 'applied' : 'failed' });
      } finally {
        await host.end();
      }
    }
  },
);

const UNIT = 'x.service';
const unit = (command: string, enabled: boolean) => ({
  kind: 'SystemdUnit',
  name: 'x',
  spec: {
    name: UNIT,
    content: `[Service]\nExecStart=${command}\n[Install]\n`,
    enabled,
    dropIns: enabled ? [{ name: 'a.conf', content: '[Service]\n' }] : [],
  },
});
const ACTIONS = [{ kind: 'daemon-reload' }, { kind: 'restart', unit: UNIT }];

it.each([
  [12, 0],
  [13, 15],
  [13, 40],
  [14, 20],
  [15, 0],
  [16, 0],
])(
  'killed at step %i (%i ms into it), a unit runs with the old or the new content, like its files',
  async (dieAt, dieAfterMs) => {
    for (const aheadMs of [0, 3_600_000]) {
      const host = new Host();
      const machine = new FakeMachine(host.folder, host.root);
      const settings = { ...machine.settings, rebootCommand: [] };
      try {
        const what = {
          first: config(unit('/old', false)),
          second: config(unit('/new', true)),
          actions: ACTIONS,
          host: settings,
        };
        await run(host, dieAt, dieAfterMs, what);
        await recover(host, aheadMs, settings);
        const { inForce, work, sound } = journalOf(host);
        const [command, enabled] = inForce === hashOf(what.second) ? ['/new', true] : ['/old', false];
        expect({
          work,
          sound,
          enabled: machine.isEnabled(UNIT),
          runs: machine.running(UNIT)?.includes(`ExecStart=${command}`),
          file: readFileSync(host.path(`etc/systemd/system/${UNIT}`), 'utf8').includes(command),
        }).toEqual({ work: undefined, sound: true, enabled, runs: true, file: true });
        expect(host.tree()[`etc/systemd/system/${UNIT}.d/a.conf`]).toBe(enabled ? '644 [Service]\n' : undefined);
      } finally {
        await host.end();
      }
    }
  },
);
