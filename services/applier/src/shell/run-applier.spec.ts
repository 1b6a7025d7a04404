import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { MemoryNodeBus } from '../testing/memory-node-bus.js';
import { config, directory, file, Host, probe } from './applier-host.fixture.js';
import { bootClock } from './boot.js';
import { EMPTY_HASH, runApplier, runAppliers } from './index.js';

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

it('announces itself, beats, applies, and takes everything back when it is deleted', async () => {
  writeFileSync(host.path('motd'), 'mine', { mode: 0o600 });
  symlinkSync('motd', host.path('link'));
  mkdirSync(host.path('etc'), { mode: 0o750 });
  const before = host.tree();
  await host.start();
  expect(host.bus.reports[0]).toMatchObject({
    kind: 'announced',
    hash: EMPTY_HASH,
    labels: { role: 'edge' },
    capabilities: ['kind:Directory', 'kind:File', 'kind:Link', 'kind:Probe'],
  });
  const applied = await host.bus.roll(
    config(
      file('/motd', 'hello'),
      file('/link', 'a file'),
      file('/etc/x/y/z.conf', 'z', '0640'),
      directory('/etc', '0700'),
      directory('/srv/data'),
    ),
  );
  expect(applied).toMatchObject({ kind: 'applied', verdict: 'applied', restored: true });
  expect([...applied.changed].sort()).toEqual(['/etc', '/etc/x/y/z.conf', '/link', '/motd', '/srv/data']);
  expect(host.tree()).toEqual({
    etc: 'dir 700',
    'etc/x': 'dir 755',
    'etc/x/y': 'dir 755',
    'etc/x/y/z.conf': '640 z',
    link: '644 a file',
    motd: '600 hello',
    srv: 'dir 755',
    'srv/data': 'dir 755',
  });
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
  expect(host.tree()).toEqual(before);
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect(host.bus.beats[0]).toMatchObject({ node: 'w-1.dc1', incarnation: 1 });
});

describe('a link', () => {
  const link = (path: string, target: string) => ({ kind: 'Link', name: path.slice(1), spec: { path, target } });

  it('takes the place of a file, a link or nothing, is corrected, and gives back what was there', async () => {
    writeFileSync(host.path('file'), 'mine', { mode: 0o600 });
    symlinkSync('elsewhere', host.path('link'));
    const before = host.tree();
    await host.start({ driftCheckMs: 60 });
    const wanted = config(link('/file', '/nowhere'), link('/link', '../x'), link('/new/one', 'a b'));
    expect(await host.bus.roll(wanted)).toMatchObject({ kind: 'applied', verdict: 'applied' });
    const linked = { file: '-> /nowhere', link: '-> ../x', new: 'dir 755', 'new/one': '-> a b' };
    expect(host.tree()).toEqual(linked);
    rmSync(host.path('file'));
    symlinkSync('other', host.path('file'));
    const { differences } = await host.bus.reported((report) => report.differences.length > 0);
    expect(differences).toEqual(['/file: points to other instead of /nowhere']);
    expect(await host.bus.roll(wanted, { kind: 'repair' })).toMatchObject({ kind: 'applied', changed: ['/file'] });
    expect(host.tree()).toEqual(linked);
    expect(await host.bus.roll(config(link('/link', 'y')))).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ ...before, link: '-> y' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).toEqual(before);
  });

  it('is rolled back with the rest of its change', async () => {
    writeFileSync(host.path('file'), 'mine');
    const before = host.tree();
    await host.start();
    const fails = probe('fails', { file: { path: '/file', matches: '^mine' } });
    expect(await host.bus.roll(config(fails))).toMatchObject({ verdict: 'applied' });
    expect(await host.bus.roll(config(fails, link('/file', '/nowhere'), link('/b', 'c')))).toMatchObject({
      verdict: 'invalid',
      restored: true,
    });
    expect(host.tree()).toEqual(before);
  });

  it('does not take the place of a directory', async () => {
    mkdirSync(host.path('folder'));
    await host.start();
    expect(await host.bus.roll(config(link('/folder', '/x')))).toMatchObject({ verdict: 'failed', restored: true });
    expect(host.tree()).toEqual({ folder: 'dir 755' });
  });
});

it('writes the bytes of a file in base64, and refuses an encoding that it does not know', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  const binary = (encoding: string) => ({
    kind: 'File',
    name: 'b',
    spec: { path: '/b', encoding, content: bytes.toString('base64').replace(/(.{76})/g, '$1\n') },
  });
  await host.start();
  expect(await host.bus.roll(config(binary('base64')))).toMatchObject({ verdict: 'applied' });
  expect(readFileSync(host.path('b'))).toEqual(bytes);
  const refused = await host.bus.roll(config(binary('base32')));
  expect(refused).toMatchObject({ verdict: 'invalid', reason: expect.stringContaining('encoding "base32"') as string });
  expect(readFileSync(host.path('b'))).toEqual(bytes);
});

it('beats soon after its start, so that a node that restarts all the time is not silent', async () => {
  await host.start({ heartbeatMs: 3_600_000 });
  expect(await until(() => host.bus.beats[0], 'the first beat')).toMatchObject({ everyMs: 3_600_000 });
});

it('beats as seldom as it is asked to, and again as it likes when it is let', async () => {
  await host.start({ heartbeatMs: 20 });
  const heard = (wanted: (beat: { readonly everyMs: number; readonly pacedMs: number }) => boolean): Promise<true> =>
    until(() => host.bus.beats.some(wanted) || undefined, 'the beat');
  await heard(({ everyMs, pacedMs }) => everyMs === 20 && pacedMs === 0);
  host.bus.push({ pace: { everyMs: 60 } });
  await heard(({ everyMs, pacedMs }) => everyMs === 60 && pacedMs === 60);
  host.bus.push({ pace: { everyMs: 5 } });
  await heard(({ everyMs, pacedMs }) => everyMs === 20 && pacedMs === 5);
  host.bus.push({ pace: { everyMs: 1e300 } });
  await heard(({ everyMs, pacedMs }) => everyMs === 600_000 && pacedMs === 600_000);
});

it('waits without a warning for the streams of a new installation', async () => {
  const said: string[] = [];
  const note = (level: string) => (_: object, words: string) => void said.push(`${level} ${words}`);
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  let missing = 1;
  const status = host.bus.status.bind(host.bus);
  host.bus.status = () =>
    missing-- > 0 ? Promise.reject(Object.assign(new Error('stream not found'), { code: 10_059 })) : status();
  await host.start({ log });
  expect([
    said.filter((line) => line.startsWith('warn')),
    said.filter((line) => line.includes('NATS has no streams yet')),
  ]).toEqual([[], ['info NATS has no streams yet; waiting for the services to create them']]);
}, 30_000);

it('keeps a folder that something managed still needs, and what others put into one', async () => {
  await host.start();
  await host.bus.roll(config(file('/a/one', '1')));
  await host.bus.roll(config(file('/a/one', '1'), file('/a/two', '2')));
  await host.bus.roll(config(file('/a/two', '2')));
  expect(host.tree()).toEqual({ a: 'dir 755', 'a/two': '644 2' });
  await host.bus.roll(config());
  expect(host.tree()).toEqual({});
  await host.bus.roll(config(file('/a/one', '1')));
  writeFileSync(host.path('a/foreign'), 'f', { mode: 0o644 });
  await host.bus.roll(config());
  expect(host.tree()).toEqual({ a: 'dir 755', 'a/foreign': '644 f' });
});

describe('a probe', () => {
  const gate = probe('gate', { file: { path: '/motd', matches: '^(mine|good)' } });

  it('that fails through the config alone makes it invalid, and everything is restored', async () => {
    writeFileSync(host.path('motd'), 'mine');
    chmodSync(host.path('motd'), 0o4711);
    const before = host.tree();
    await host.start({ allowSetuid: true });
    const report = await host.bus.roll(config(file('/motd', 'bad'), file('/new/file', 'x'), gate));
    expect(report).toMatchObject({ kind: 'invalid', probe: 'gate', restored: true, hash: EMPTY_HASH });
    expect(host.tree()).toEqual(before);
    expect(await host.bus.roll(config(file('/motd', 'good'), gate))).toMatchObject({ kind: 'applied' });
  });

  it('that fails on the restored config too makes the node failed', async () => {
    await host.start({ allowExec: true });
    const once = probe('once', { exec: { argv: ['/bin/sh', '-c', 'test ! -e ../once && touch ../once'] }, retries: 0 });
    const report = await host.bus.roll(config(file('/f', 'x'), once));
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toContain('probe once passed before and fails now');
    expect(host.tree()).toEqual({});
  });
});

describe('content that the node refuses is invalid, and leaves no trace', () => {
  it.each([
    ['a path with ..', [file('/a/../../out', 'x')]],
    ['a relative path', [file('out', 'x')]],
    ['a file below a file of the same config', [file('/p', 'x'), file('/p/q', 'x')]],
    ['two fragments at one path', [file('/p', 'x'), { ...file('/p/', 'y'), name: 'other' }]],
    ['a mode that is none', [file('/p', 'x', '0999')]],
  ])('%s', async (_name, fragments) => {
    symlinkSync(host.folder, host.path('outside'));
    symlinkSync('gone', host.path('nowhere'));
    mkdirSync(host.path('folder'));
    writeFileSync(host.path('plain'), 'p');
    const before = host.tree();
    await host.start();
    expect(await host.bus.roll(config(...fragments))).toMatchObject({
      kind: 'invalid',
      restored: true,
      hash: EMPTY_HASH,
    });
    expect(host.tree()).toEqual(before);
  });
});

describe('what stands in the way on this machine fails, makes nothing known-bad, and leaves no trace', () => {
  it.each([
    ['a parent that is a link out of the root', [file('/outside/x', 'x')]],
    ['a parent that is a link to nowhere', [file('/nowhere/x', 'x')]],
    ['a file where a directory stands', [file('/folder', 'x')]],
    ['a directory where a file stands', [directory('/plain')]],
    ['a file below a file', [file('/plain/x', 'x')]],
  ])('%s', async (_name, fragments) => {
    symlinkSync(host.folder, host.path('outside'));
    symlinkSync('gone', host.path('nowhere'));
    mkdirSync(host.path('folder'));
    writeFileSync(host.path('plain'), 'p');
    const before = host.tree();
    await host.start();
    expect(await host.bus.roll(config(...fragments))).toMatchObject({
      kind: 'failed',
      restored: true,
      hash: EMPTY_HASH,
    });
    expect(host.tree()).toEqual(before);
  });
});

it('follows a link that stays inside the root, and never one that was swapped in', async () => {
  mkdirSync(host.path('real'));
  symlinkSync('real', host.path('alias'));
  await host.start();
  expect(await host.bus.roll(config(file('/alias/f', 'x')))).toMatchObject({ kind: 'applied' });
  expect(host.tree()).toMatchObject({ 'real/f': '644 x' });
  rmSync(host.path('alias'));
  symlinkSync(host.folder, host.path('alias'));
  expect(await host.bus.roll(config(file('/alias/f', 'y')))).toMatchObject({ kind: 'failed' });
  expect(host.tree()).not.toHaveProperty('f');
});

it('leaves a link to a folder in its place, whatever it manages in it', async () => {
  mkdirSync(host.path('x'));
  symlinkSync('x', host.path('dd'));
  const before = host.tree();
  await host.start();
  expect(await host.bus.roll(config(directory('/dd'), file('/dd/in/a', 'x')))).toMatchObject({ kind: 'applied' });
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
  expect(host.tree()).toEqual(before);
});

it('blames the node, not the config, for what stands in its way since, and leaves that as it was', async () => {
  await host.start();
  await host.bus.roll(config(file('/f', 'x'), file('/d/g', 'x')));
  rmSync(host.path('f'));
  mkdirSync(host.path('f/foreign'), { recursive: true });
  let before = host.tree();
  expect(await host.bus.roll(config(file('/f', 'y'), file('/d/g', 'x')))).toMatchObject({
    kind: 'failed',
    restored: true,
  });
  expect(host.tree()).toEqual(before);
  rmSync(host.path('f'), { recursive: true });
  rmSync(host.path('d'), { recursive: true });
  symlinkSync(host.folder, host.path('d'));
  before = host.tree();
  expect(await host.bus.roll(config(file('/f', 'y')))).toMatchObject({ kind: 'failed', restored: true });
  expect(host.tree()).toEqual(before);
  rmSync(host.path('d'));
  expect(await host.bus.roll(config(file('/f', 'x'), file('/d/g', 'x')), { kind: 'repair' })).toMatchObject({
    kind: 'applied',
  });
  expect(host.tree()).toEqual({ d: 'dir 755', 'd/g': '644 x', f: '644 x' });
});

it('serves hundreds of nodes in one process', async () => {
  const buses = Array.from({ length: 200 }, (_, i) => new MemoryNodeBus(`w-${i}`));
  const running = await runAppliers(
    buses.map((bus) => ({ node: bus.node, labels: {}, root: host.root, stateDir: join(host.folder, bus.node), bus })),
    join(host.folder, 'guard'),
  );
  await Promise.all(buses.map((bus) => bus.reported(({ kind }) => kind === 'announced')));
  await Promise.all(buses.map((bus) => bus.roll(config(file(`/${bus.node}`, 'x')))));
  await running.stop();
  expect(Object.keys(host.tree())).toHaveLength(200);
});

it('refuses kinds, commands and actions that it cannot carry out as the fault of the node', async () => {
  await host.start();
  const unit = { kind: 'SystemdUnit', name: 'u', spec: {} };
  const exec = { kind: 'Exec', name: 'e', spec: { check: { argv: ['true'] }, apply: { argv: ['true'] } } };
  for (const fragments of [[unit], [exec], [probe('p', { exec: { argv: ['true'] } })]]) {
    expect(await host.bus.roll(config(...fragments))).toMatchObject({ kind: 'failed', restored: true });
  }
  expect(await host.bus.roll(config(file('/f', 'x')), { actions: [{ kind: 'reboot' }] })).toMatchObject({
    kind: 'failed',
  });
  expect(host.tree()).toEqual({});
});

it('runs an Exec where its check says that it is needed, and kills one that hangs', async () => {
  await host.start({ allowExec: true });
  const exec = (apply: string, timeout = '5s') => ({
    kind: 'Exec',
    name: 'e',
    spec: { check: { argv: ['test', '-e', 'done'] }, apply: { argv: ['/bin/sh', '-c', apply] }, timeout },
  });
  expect(await host.bus.roll(config(exec('exit 3')))).toMatchObject({ kind: 'failed', restored: true });
  expect(await host.bus.roll(config(exec('sleep 60', '200ms')))).toMatchObject({ kind: 'failed' });
  expect(await host.bus.roll(config(exec('echo once >> done')))).toMatchObject({
    kind: 'applied',
    changed: ['Exec/e'],
  });
  expect(await host.bus.roll(config(exec('echo once >> done '), file('/f', 'x')))).toMatchObject({
    kind: 'applied',
    changed: ['/f'],
  });
  expect(readFileSync(host.path('done'), 'utf8')).toBe('once\n');
});

it('does not run what an Exec applies when its check has taken the time', async () => {
  // The check runs before the intent is journaled, and again before `apply`: after that time is over.
  const clock = () =>
    bootClock() +
    (existsSync(host.path('checked')) && readFileSync(host.path('checked'), 'utf8') === '..' ? 3_600_000 : 0);
  await host.start({ allowExec: true, clock });
  const exec = {
    kind: 'Exec',
    name: 'e',
    spec: {
      check: { argv: ['/bin/sh', '-c', 'printf . >> checked; test -e done'] },
      apply: { argv: ['touch', 'done'] },
    },
  };
  expect(await host.bus.roll(config(exec))).toMatchObject({ kind: 'failed', restored: true });
  expect(host.tree()).toEqual({ checked: '644 ..' });
});

it('shows a reader the old or the new content, never a part', async () => {
  const contents = ['A', 'B'].map((letter) => letter.repeat(300_000));
  await host.start();
  await host.bus.roll(config(file('/big', contents[0] ?? '')));
  let reading = true;
  let reads = 0;
  const reader = (async () => {
    while (reading) {
      expect(contents).toContain(readFileSync(host.path('big'), 'utf8'));
      reads += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  for (let i = 1; i <= 12; i++) await host.bus.roll(config(file('/big', contents[i % 2] ?? '')));
  reading = false;
  await reader;
  expect(reads).toBeGreaterThan(12);
});

it('reports drift once and repairs it under a lease', async () => {
  await host.start({ driftCheckMs: 60 });
  const wanted = config(file('/f', 'x'), file('/g', 'x', '0644'));
  await host.bus.roll(wanted);
  writeFileSync(host.path('f'), 'edited');
  chmodSync(host.path('g'), 0o600);
  const drifted = await host.bus.reported(({ differences }) => differences.length === 2);
  expect(drifted).toMatchObject({
    kind: 'drifted',
    differences: ['/f: content differs', '/g: mode 0600 instead of 0644'],
  });
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(host.bus.reports.filter(({ differences }) => differences.length === 2)).toHaveLength(1);
  expect(await host.bus.roll(wanted, { kind: 'repair' })).toMatchObject({ kind: 'applied', changed: ['/f', '/g'] });
  expect(host.tree()).toEqual({ f: '644 x', g: '644 x' });
});

it('lives through a bus that is away, and goes on when it is back', async () => {
  host.bus.down = true;
  await host.start({ bus: async () => host.bus });
  await new Promise((resolve) => setTimeout(resolve, 100));
  host.bus.down = false;
  host.bus.push({});
  await host.bus.reported(({ kind }) => kind === 'announced', 5_000);
  expect(await host.bus.roll(config(file('/f', 'x')))).toMatchObject({ kind: 'applied' });
});

describe('the state folder', () => {
  it('serves one applier at a time, and is taken over from a dead one', async () => {
    const first = await host.start();
    await expect(host.start()).rejects.toThrow(/lock: the state folder is in use by process \d+.*--state/);
    await first.stop();
    writeFileSync(join(host.state, 'lock'), JSON.stringify({ pid: 1, started: 'another boot/1' }));
    await host.start();
  });

  it('with a torn journal is used from the copy before, and refused without one', async () => {
    await (await host.start()).stop();
    const journal = join(host.state, 'journal.json');
    const good = readFileSync(journal, 'utf8');
    await (await host.start()).stop();
    writeFileSync(journal, good.slice(0, 100));
    await (await host.start()).stop();
    writeFileSync(journal, good.slice(0, 100));
    writeFileSync(join(host.state, 'journal.prev.json'), '{}');
    await expect(host.start()).rejects.toThrow(
      /journal\.json: not a journal, or an incomplete one, and .*move both away/,
    );
  });

  it('of another node is refused, and keeps no other applier of the process from running', async () => {
    await (await host.start()).stop();
    const options = { labels: {}, root: host.root, bus: host.bus };
    await expect(runApplier({ ...options, node: 'other', stateDir: host.state })).rejects.toThrow(
      /journal of node w-1\.dc1, not of other/,
    );
    const all = [
      { ...options, node: 'other', stateDir: host.state },
      { ...options, node: 'w-1.dc1', stateDir: join(host.folder, 's2') },
    ];
    const running = await runAppliers(all, join(host.folder, 'guard'));
    expect([running.appliers.map(({ node }) => node), running.refused.map(({ node }) => node)]).toEqual([
      ['w-1.dc1'],
      ['other'],
    ]);
    await running.stop();
  });
});
