import { spawn } from 'node:child_process';
import {
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '#libs/contracts';
import { until } from '#libs/testing';
import { MemoryNodeBus } from '../testing/memory-node-bus.js';
import { SmallDisk, whyNoSmallDisk, type SmallDiskType } from '../testing/small-disk.js';
import { config, file, Host } from './applier-host.fixture.js';
import { bootClock } from './boot.js';
import { runApplier } from './index.js';
import { decodeJournal } from './state/journal-text.js';

let leases = 0;
const KIB = 1_024;
const DISK_KIB = 2_048;
const TYPES: readonly SmallDiskType[] = ['tmpfs', 'ext4'];

const exec = (script: string) => ({
  kind: 'Exec',
  name: 'fill',
  spec: { check: { argv: ['test', '-e', 'done'] }, apply: { argv: ['/bin/sh', '-c', script] } },
});
const OLD = config(file('/etc/a', 'old', '0640'), file('/etc/b', 'b'));
/** Fills the disk completely, and fails. */
const FILLS = config(file('/etc/a', 'new', '0600'), file('/new/c', 'c'), exec('cat /dev/zero > fill; exit 1'));

/** Everything that `stat` shows and a rollback must restore, and the content, for all paths below a folder. */
function picture(folder: string): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const { mode, uid, gid, nlink, size } = lstatSync(path);
    if (entry.name !== 'fill')
      found[path.slice(folder.length)] = entry.isDirectory()
        ? { mode, uid, gid }
        : { mode, uid, gid, nlink, size, content: readFileSync(path, 'latin1') };
  }
  return found;
}

const DISKS = TYPES.map((type) => {
  const why = whyNoSmallDisk(type);
  return { type, why, note: why === undefined ? '' : ` (${why})` };
});

describe.each(DISKS)('on a small $type that holds the root and the state folder$note', ({ type, why }) => {
  const test = why === undefined ? it : it.skip;
  let disk: SmallDisk;
  let host: Host;
  beforeEach(async () => {
    if (why !== undefined) return;
    disk = await SmallDisk.mount(type, DISK_KIB);
    host = new Host(disk.path);
    mkdirSync(host.path('data'));
    writeFileSync(host.path('data/mine'), 'mine', { mode: 0o604 });
    lchownSync(host.path('data/mine'), 12, 34);
  });
  afterEach(async () => {
    if (why !== undefined) return;
    await host.end().catch(() => undefined);
    await disk.end();
  });

  test('rolls back a change whose file does not fit, and names the file in the report', async () => {
    await run(host, OLD);
    const before = picture(host.root);
    // The config, which is stored in the state folder, fits, but not the file as well.
    await run(host, config(file('/etc/a', 'new'), file('/data/mine', 'x'.repeat(disk.freeBytes * 0.6))));
    expect(journalOf(host)).toMatchObject({ sound: true, lastDealt: { verdict: 'failed' } });
    expect(journalOf(host).lastDealt?.reason).toMatch(/File\/data-mine \(\/data\/mine\): ENOSPC/);
    expect(picture(host.root)).toEqual(before);
  });

  test('rolls back a change whose command fills the disk, while the disk is full', async () => {
    await run(host, OLD);
    const before = picture(host.root);
    await run(host, FILLS);
    expect(journalOf(host)).toMatchObject({ sound: true, lastDealt: { verdict: 'failed' } });
    expect(journalOf(host).lastDealt?.reason).toContain('Exec/fill');
    expect(picture(host.root)).toEqual(before);
    // Nothing else has to be cleaned up by hand.
    rmSync(host.path('fill'));
    await run(host, config(file('/etc/a', 'good')));
    expect(journalOf(host)).toMatchObject({ lastDealt: { verdict: 'applied' } });
  });

  test('rolls back a change that makes many files smaller, while the disk is full', async () => {
    await run(host, OLD);
    const paths = ['1', '2', '3', '4', '5'].map((name) => `/data/${name}`);
    for (const path of paths) writeFileSync(host.path(path), path.repeat(10 * KIB), { mode: 0o640 });
    const before = picture(host.root);
    const small = paths.map((path) => file(path, 'small'));
    await run(host, config(...OLD.fragments, ...small, exec('cat /dev/zero > fill; exit 1')));
    expect(picture(host.root)).toEqual(before);
    expect(journalOf(host)).toMatchObject({ sound: true, lastDealt: { verdict: 'failed' } });
  });

  test('starts nothing if its rollback does not fit, and takes none of the space', async () => {
    await host.start({ allowExec: true });
    await host.bus.roll(OLD);
    const paths = ['1', '2', '3', '4', '5'].map((name) => `/data/${name}`);
    for (const path of paths) writeFileSync(host.path(path), path.repeat(10 * KIB));
    disk.fill('fill', 400 * KIB);
    const before = picture(host.root);
    const report = await host.bus.roll(config(...paths.map((path) => file(path, 'small'))), { applyMs: 4_000 });
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toMatch(/nothing was started: .*reserve: cannot set aside \d+ KiB .* bytes are free/);
    expect(picture(host.root)).toEqual(before);
    await until(() => disk.freeBytes > 300 * KIB, 'the space is free again');
  });

  test('gives up a download that is kept for the next lease, if a change needs its space', async () => {
    await host.start({ allowExec: true });
    await host.bus.roll(OLD);
    const part = join(host.state, 'originals', `${'a'.repeat(64)}.part`);
    const kept = join(host.state, 'originals', `${'b'.repeat(64)}.part`);
    mkdirSync(join(host.state, 'originals'), { recursive: true });
    writeFileSync(part, 'x'.repeat(disk.freeBytes * 0.6));
    utimesSync(part, Date.now() / 1_000 - 60, Date.now() / 1_000 - 60);
    writeFileSync(kept, 'x'.repeat(200 * KIB));
    expect(await host.bus.roll(config(exec('exit 1')))).toMatchObject({ verdict: 'failed', restored: true });
    await until(() => !existsSync(part), 'what takes more than half of the space to be removed');
    expect(existsSync(kept)).toBe(true);
    const paths = ['1', '2', '3', '4', '5'].map((name) => `/data/${name}`);
    for (const path of paths) writeFileSync(host.path(path), path.repeat(2 * KIB));
    disk.fill('fill', 60 * KIB);
    const report = await host.bus.roll(config(...OLD.fragments, ...paths.map((path) => file(path, 'small'))));
    expect(report).toMatchObject({ verdict: 'applied', reason: '' });
    expect(existsSync(kept)).toBe(false);
  });

  test('rolls back a change that also takes the reserve, and records it when possible', async () => {
    await run(host, OLD);
    const before = picture(host.root);
    const takes = 'cat /dev/zero > fill; rm -f ../state/reserve; cat /dev/zero >> fill; exit 1';
    await run(host, config(file('/etc/a', 'new', '0600'), file('/new/c', 'c'.repeat(40 * KIB)), exec(takes)));
    expect(journalOf(host)).toMatchObject({ sound: true, lastDealt: { verdict: 'failed' } });
    expect(picture(host.root)).toEqual(before);
  });

  test.each(type === 'tmpfs' ? [10, 11, 12, 13, 14, 15] : [12, 15])(
    'restores without NATS on a full disk after a kill at step %i of a change that fills the disk',
    async (dieAt) => {
      await run(host, FILLS, dieAt);
      const before = journalOf(host);
      disk.fill('fill-too');
      for (const aheadMs of [0, 3_600_000]) await recover(host, aheadMs);
      const journal = journalOf(host);
      expect([journal.work, journal.inForce]).toEqual([undefined, before.work?.from ?? before.inForce]);
      expect(picture(host.root)).toMatchObject({ '/etc/a': { content: 'old' }, '/etc/b': { content: 'b' } });
      expect(existsSync(host.path('new'))).toBe(false);
    },
  );

  test('starts nothing if the disk is already full, and names the file that cannot be written', async () => {
    await host.start();
    await host.bus.roll(OLD);
    await until(() => existsSync(join(host.state, 'reserve')), 'the space is set aside');
    const before = picture(host.root);
    disk.fill('fill');
    const report = await host.bus.roll(config(file('/etc/a', 'new')), { applyMs: 4_000 });
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toMatch(
      /nothing was started: .*\/state\/(reserve: cannot set aside|(configs\/[0-9a-f]{64}|journal(\.prev)?)\.json: ENOSPC)/,
    );
    expect(picture(host.root)).toEqual(before);
    disk.empty('fill');
    expect(await host.bus.roll(config(file('/etc/a', 'new')))).toMatchObject({ kind: 'applied' });
  });
});

/**
 * A process that applies OLD, then another config, and ends when that was reported. With `dieAt`, it kills itself
 * before that step.
 */
async function run({ root, state }: Host, second: Config, dieAt = 0): Promise<void> {
  const testing = join(__dirname, '../testing');
  const plan = { root, state, first: OLD, second, dieAt, dieAfterMs: 0, allowExec: true, lastLease: (leases += 2) };
  const folder = mkdtempSync(join(tmpdir(), 'sluice-plan-'));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  const child = spawn(
    process.execPath,
    [join(testing, 'run-ts.cjs'), join(testing, 'killed-applier.ts'), `@${join(folder, 'plan.json')}`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await until(() => child.signalCode !== null || child.exitCode !== null, 'the applier has ended');
  rmSync(folder, { recursive: true });
  expect([child.signalCode, child.exitCode]).toEqual(dieAt === 0 ? [null, 0] : ['SIGKILL', null]);
}

const journalOf = ({ state }: Host) => {
  const journal = decodeJournal(readFileSync(join(state, 'journal.json'), 'utf8'));
  if (typeof journal === 'string') throw new Error(journal);
  return journal;
};

/** Restarts the killed process, without NATS, and waits until nothing is unfinished. */
async function recover(host: Host, aheadMs: number): Promise<void> {
  const bus = new MemoryNodeBus('n');
  bus.down = true;
  const applier = await runApplier({
    node: 'n',
    labels: {},
    root: host.root,
    stateDir: host.state,
    bus,
    allowExec: true,
    clock: () => bootClock() + aheadMs,
  });
  await until(() => journalOf(host).work === undefined, 'no work is left in the journal');
  await applier.stop();
}

describe('the state folder', () => {
  let host: Host;
  const logged: string[] = [];
  const note = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${(fields as { readonly error?: string }).error ?? ''}`);
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  beforeEach(() => {
    logged.length = 0;
    host = new Host();
  });
  afterEach(() => host.end());
  const configs = (): string => join(host.state, 'configs');
  const configFile = (): string => join(configs(), `${journalOf(host).inForce}.json`);

  it('may contain what cannot be removed: the applier works, and logs it once', async () => {
    await host.start({ log });
    await host.bus.roll(OLD);
    mkdirSync(join(configs(), 'lost+found'));
    mkdirSync(join(configs(), `${'0'.repeat(64)}.json`, 'below'), { recursive: true });
    for (const content of ['1', '2', '3'])
      expect(await host.bus.roll(config(file('/etc/a', content)))).toMatchObject({ kind: 'applied' });
    await until(() => logged.some((line) => line.includes('cannot be cleaned up')), 'the error is logged');
    expect(readdirSync(configs())).toContain('lost+found');
    const lines = logged.filter((line) => /^(warn|error)/.test(line));
    expect(lines).toEqual([expect.stringMatching(/cannot be cleaned up.*0{64}\.json/)]);
  });

  it.each([
    ['damaged', (path: string) => writeFileSync(path, '{"fragments": [')],
    ['empty', (path: string) => writeFileSync(path, '')],
    ['lost', (path: string) => rmSync(path)],
  ])('downloads a config again that is %s', async (_is, damage) => {
    const applier = await host.start({ log });
    await host.bus.roll(OLD);
    await applier.stop();
    const whole = readFileSync(configFile(), 'utf8');
    damage(configFile());
    await host.start({ log });
    expect(await host.bus.roll(config(file('/etc/a', 'new')), { kind: 'forward' })).toMatchObject({ kind: 'applied' });
    expect(whole).toContain('"old"');
    expect(logged.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  it('with a config that can be neither read nor replaced allows drift checks, but no change', async () => {
    const applier = await host.start({ log });
    await host.bus.roll(OLD);
    await applier.stop();
    const path = configFile();
    renameSync(path, join(host.folder, 'aside'));
    mkdirSync(join(path, 'below'), { recursive: true });
    writeFileSync(host.path('etc/a'), 'edited');
    await host.start({ log, driftCheckMs: 50 });
    await host.bus.reported(({ differences }) => differences.includes('/etc/a: content differs'));
    const report = await host.bus.roll(config(file('/etc/a', 'new')), { applyMs: 4_000 });
    expect(report).toMatchObject({ kind: 'failed' });
    expect(report.reason).toContain(path);
    expect(logged.filter((line) => line.includes('cannot be used; fetching it again'))).toHaveLength(1);
  });
});
