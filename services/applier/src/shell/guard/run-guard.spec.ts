import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { config, file, Host } from '../applier-host.fixture.js';
import { bootClock } from '../boot.js';
import { runApplier } from '../index.js';
import { decodeJournal } from '../state/journal-text.js';
import { readChange } from './guarded-change.js';
import { runGuard } from './run-guard.js';
import { serviceWords } from './sentinel.js';
import { readWatch, WatchFile } from './watch-file.js';

const OLD = { b: '644 old' };
const APPLY_MS = 3_000;

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

const watchFile = () => join(host.state, 'guard');
const journal = () => {
  const found = decodeJournal(readFileSync(join(host.state, 'journal.json'), 'utf8'));
  if (typeof found === 'string') throw new Error(found);
  return found;
};
const run = () => runGuard(readWatch(watchFile()).id, watchFile());

/** An applier in a separate process that replaces a file, and is killed or stopped between two of its steps. */
async function applierThatStops(
  dieAt: number,
  { applyMs = APPLY_MS, second = [] as readonly object[] } = {},
): Promise<ChildProcess> {
  const testing = join(__dirname, '../../testing');
  const plan = {
    root: host.root,
    state: host.state,
    first: config(file('/b', 'old')),
    second: config(file('/b', 'new'), file('/c', 'new'), ...(second as never[])),
    allowExec: true,
    dieAt,
    dieAfterMs: 0,
    applyMs,
  };
  const child = spawn(
    process.execPath,
    [join(testing, 'run-ts.cjs'), join(testing, 'killed-applier.ts'), JSON.stringify(plan)],
    { stdio: 'ignore' },
  );
  await until(() => child.signalCode !== null || child.exitCode !== null, 'the applier is killed');
  return child;
}

/** Its time is over. */
async function late(): Promise<void> {
  const endMs = (journal().work?.rollBackAtMs ?? 0) + 1_000;
  await until(() => bootClock() > endMs, 'the deadline of the change has passed');
}

it('rolls back for a killed applier when the time is over, and leaves its report to the next one', async () => {
  await applierThatStops(12);
  expect(journal().work).toMatchObject({ phase: 'forward', lease: 'l2' });
  expect(host.tree()).not.toEqual(OLD);
  await late();
  expect(await run()).toBe(0);
  expect(host.tree()).toEqual(OLD);
  expect(journal().work).toBeUndefined();
  expect(journal()).toMatchObject({
    sound: true,
    lastDealt: { lease: 'l2', verdict: 'failed', reason: expect.stringMatching(/^not confirmed/) as string },
    report: { kind: 'failed', lease: 'l2', restored: true },
  });
});

it('gives a killed applier the rest of its time to restart', async () => {
  await applierThatStops(12, { applyMs: 60_000 });
  const before = host.tree();
  // A process that is gone gives no sign of life. That is no reason to take it for hung.
  const watch = readWatch(watchFile());
  new WatchFile(watchFile()).write({ ...watch, beatMs: watch.beatMs - 3_600_000 });
  const seconds = await run();
  expect(seconds).toBeGreaterThan(1);
  expect(seconds).toBeLessThanOrEqual(41);
  expect(journal().work).toMatchObject({ phase: 'forward', lease: 'l2' });
  expect(host.tree()).toEqual(before);
});

it('never continues a change that the killed applier might have confirmed', async () => {
  await applierThatStops(12, { applyMs: 60_000 });
  const guard = await runApplier({
    node: 'n',
    labels: {},
    root: host.root,
    stateDir: host.state,
    asGuard: true,
    bus: () => Promise.reject(new Error('no bus')),
  });
  await until(() => journal().work === undefined, 'the work is over');
  await guard.stop();
  expect(host.tree()).toEqual(OLD);
  expect(journal().lastDealt).toMatchObject({
    verdict: 'failed',
    reason: 'the applier was gone before it confirmed the change',
  });
});

it('rolls back with the settings of the applier: a command that ran is undone', async () => {
  const command = {
    check: { argv: ['test', '-e', 'ran'] },
    apply: { argv: ['touch', 'ran'] },
    undo: { argv: ['touch', 'undone'] },
  };
  await applierThatStops(18, { second: [{ kind: 'Exec', name: 'e', spec: command }] });
  expect(Object.keys(host.tree())).toContain('ran');
  await late();
  expect(await run()).toBe(0);
  expect(Object.keys(host.tree()).filter((path) => path !== 'ran')).toEqual(['b', 'undone']);
  expect(journal().lastDealt?.reason).toMatch(/^not confirmed \d+ ms after the lease was read$/);
});

it('rolls back with the copy of a torn journal', async () => {
  await applierThatStops(12);
  await late();
  writeFileSync(join(host.state, 'journal.json'), 'torn');
  expect(await run()).toBe(0);
  expect(host.tree()).toEqual(OLD);
});

it('does nothing if the process now has other work or none', async () => {
  await applierThatStops(12);
  await late();
  const watch = readWatch(watchFile());
  expect(await runGuard('another', watchFile())).toBe(0);
  expect(await runGuard(watch.id, join(host.state, 'missing'))).toBe(0);
  new WatchFile(watchFile()).write({ ...watch, dueMs: 0 });
  expect(await runGuard(watch.id, watchFile())).toBe(0);
  expect(journal().work).toMatchObject({ lease: 'l2' });
});

it('reads a file again that is being written', async () => {
  await applierThatStops(12);
  const { id } = readWatch(watchFile());
  const record = join(host.state, 'guard.json');
  const text = readFileSync(record, 'utf8');
  writeFileSync(record, text.slice(0, 40));
  expect(await runGuard(id, watchFile())).toBe(1);
  writeFileSync(watchFile(), `${id} `);
  expect(await runGuard(id, watchFile())).toBe(1);
});

it('does not touch a process that only reuses the pid of the applier', async () => {
  await applierThatStops(12);
  const other = spawn('sleep', ['100'], { stdio: 'ignore' });
  try {
    const record = join(host.state, 'guard.json');
    writeFileSync(record, JSON.stringify({ ...readChange(host.state), pid: other.pid }));
    const lock = JSON.parse(readFileSync(join(host.state, 'lock'), 'utf8')) as object;
    writeFileSync(join(host.state, 'lock'), JSON.stringify({ ...lock, pid: other.pid }));
    await late();
    expect(await run()).toBe(0);
    expect(host.tree()).toEqual(OLD);
    expect(other.signalCode).toBeNull();
  } finally {
    other.kill();
  }
});

it('makes an applier wait that starts during its rollback', async () => {
  const events: string[] = [];
  const guard = await runApplier({
    node: 'w-1.dc1',
    labels: {},
    root: host.root,
    stateDir: host.state,
    asGuard: true,
    bus: () => Promise.reject(new Error('no bus')),
  });
  const starting = host.start().then(() => events.push('the applier runs'));
  await until(
    () => readdirSync(host.state).some((name) => name.startsWith('lock.')),
    'the applier asks for the state folder',
  );
  events.push('the guard ends');
  await guard.stop();
  await starting;
  expect(events).toEqual(['the guard ends', 'the applier runs']);
});

it('runs while a change is under way, and leaves nothing behind', async () => {
  await host.start();
  const seen: string[] = [];
  const gate = { kind: 'Probe', name: 'gate', spec: { file: { path: '/gate', matches: 'open' }, retries: 0 } };
  const report = await host.bus.roll(config(file('/gate', 'open'), gate));
  expect(report).toMatchObject({ verdict: 'applied' });
  seen.push(...readdirSync(host.state));
  await until(() => readChange(host.state) === undefined, 'the record of the change is gone');
  expect(readWatch(watchFile())).toMatchObject({ dueMs: 0, stateDirs: [] });
  expect(seen).toContain('guard');
});

it('runs as a separate service under systemd, which restarts it when it is killed', () => {
  expect(serviceWords(['/bin/sh', '-c', 'true'], 'sluice-guard-a')).toEqual([
    'systemd-run',
    '--quiet',
    '--collect',
    '--unit=sluice-guard-a',
    '--property=Restart=on-failure',
    '--property=RestartSec=1',
    '--',
    '/bin/sh',
    '-c',
    'true',
  ]);
});
