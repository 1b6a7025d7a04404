import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { config, file, Host } from '../applier-host.fixture.js';
import { bootClock } from '../boot.js';
import { runApplier } from '../index.js';
import { decodeJournal } from '../state/journal-text.js';
import { timerWords, type GuardOrder } from './guard.js';
import { runGuard } from './run-guard.js';

const OLD = { b: '644 old' };
const APPLY_MS = 3_000;

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

const journal = () => {
  const found = decodeJournal(readFileSync(join(host.state, 'journal.json'), 'utf8'));
  if (typeof found === 'string') throw new Error(found);
  return found;
};
const order = (more: Partial<GuardOrder> = {}): GuardOrder => ({
  node: 'n',
  root: host.root,
  stateDir: host.state,
  network: {},
  lease: 'l2',
  atMs: journal().work?.rollBackAtMs ?? bootClock(),
  ...more,
});

/**
 * An applier in a process of its own that applies a file over an old one, and is killed or stopped between two of its
 * steps.
 */
async function applierThatStops(dieAt: number): Promise<ChildProcess> {
  const testing = join(__dirname, '../../testing');
  const plan = {
    root: host.root,
    state: host.state,
    first: config(file('/b', 'old')),
    second: config(file('/b', 'new'), file('/c', 'new')),
    dieAt,
    dieAfterMs: 0,
    applyMs: APPLY_MS,
  };
  const child = spawn(
    process.execPath,
    [join(testing, 'run-ts.cjs'), join(testing, 'killed-applier.ts'), JSON.stringify(plan)],
    { stdio: 'ignore' },
  );
  await until(() => child.signalCode !== null || child.exitCode !== null, 'the applier is killed');
  return child;
}

it('rolls back in place of an applier that was killed, when the time is over, and leaves its report for the next one', async () => {
  await applierThatStops(12);
  expect(journal().work).toMatchObject({ phase: 'forward', lease: 'l2' });
  expect(host.tree()).not.toEqual(OLD);
  expect(await runGuard(order())).toBe('rolled back');
  expect(host.tree()).toEqual(OLD);
  expect(journal().work).toBeUndefined();
  expect(journal()).toMatchObject({
    sound: true,
    lastDealt: { lease: 'l2', verdict: 'failed' },
    report: { kind: 'failed', lease: 'l2', restored: true },
  });
});

it('rolls back by the copy of a journal that is torn', async () => {
  await applierThatStops(12);
  const given = order();
  writeFileSync(join(host.state, 'journal.json'), 'torn');
  expect(await runGuard(given)).toBe('rolled back');
  expect(host.tree()).toEqual(OLD);
});

it('does nothing where the change was confirmed, or another one is under way', async () => {
  await applierThatStops(12);
  expect(await runGuard(order({ lease: 'l1', atMs: 0 }))).toBe('nothing to do');
  expect(journal().work).toMatchObject({ lease: 'l2' });
});

it('is waited for by an applier that starts meanwhile', async () => {
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

it('sleeps as a timer where there is systemd, as a unit that does not end with the applier', () => {
  expect(timerWords(['node', 'main.js', '--guard', '{}'], 8_250, 'sluice-guard-a')).toEqual([
    'systemd-run',
    '--quiet',
    '--collect',
    '--unit=sluice-guard-a',
    '--on-active=8.250s',
    '--timer-property=AccuracySec=100ms',
    '--',
    'node',
    'main.js',
    '--guard',
    '{}',
  ]);
});
