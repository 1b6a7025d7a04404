import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ConfigEntry, PathAnswer, PathQuery } from '#libs/contracts';
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

it('announces itself, sends heartbeats, applies, and restores everything when its config is deleted', async () => {
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
  expect(await until(() => host.bus.beats[0], 'a heartbeat')).toMatchObject({ node: 'w-1.dc1', incarnation: 1 });
});

describe('a link', () => {
  const link = (path: string, target: string) => ({ kind: 'Link', name: path.slice(1), spec: { path, target } });

  it('replaces a file, a link or nothing, is repaired, and restores what existed before', async () => {
    writeFileSync(host.path('file'), 'mine', { mode: 0o600 });
    symlinkSync('elsewhere', host.path('link'));
    const before = host.tree();
    await host.start({ driftCheckMs: 60 });
    const wanted = config(link('/file', '/nowhere'), link('/link', '../x'), link('/new/one', 'a b'));
    expect(await host.bus.roll(wanted)).toMatchObject({ kind: 'applied', verdict: 'applied' });
    const linked = { file: '-> /nowhere', link: '-> ../x', new: 'dir 755', 'new/one': '-> a b' };
    expect(host.tree()).toEqual(linked);
    // In one step: a check for drift could find no link at all between two.
    symlinkSync('other', host.path('.file'));
    renameSync(host.path('.file'), host.path('file'));
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

  it('does not replace a directory', async () => {
    mkdirSync(host.path('folder'));
    await host.start();
    expect(await host.bus.roll(config(link('/folder', '/x')))).toMatchObject({ verdict: 'failed', restored: true });
    expect(host.tree()).toEqual({ folder: 'dir 755' });
  });
});

describe('what exists at a path', () => {
  const ask = (request: PathQuery): Promise<PathAnswer> =>
    new Promise((answer) => host.bus.push({ query: { request, answer } }));
  const look = (...paths: readonly string[]): Promise<PathAnswer> => ask({ paths, entries: [] });
  /** What the node would refuse of these entries. */
  const refused = async (...entries: readonly ConfigEntry[]): Promise<object> => {
    const sent = entries.map((entry) => ({ ...entry, labels: {} })) as unknown as PathQuery['entries'];
    const { found } = await ask({ paths: entries.map(({ spec }) => String(spec['path'])), entries: sent });
    return Object.fromEntries(found.map((one) => [one.path, one.refused]));
  };

  it('is reported if Sluice does not manage it', async () => {
    writeFileSync(host.path('motd'), 'mine', { mode: 0o600 });
    writeFileSync(host.path('own'), 'mine');
    symlinkSync('motd', host.path('link'));
    mkdirSync(host.path('folder'));
    await host.start();
    await host.bus.roll(config(file('/own', 'ours')));
    const owner = `${process.getuid?.()}:${process.getgid?.()}`;
    expect(await look('/motd', '/link', '/folder', '/none', '/own', '//own', '/motd/x', 'motd')).toEqual({
      found: [
        { path: '/motd', state: 'file', what: `a file of 4 bytes (mode 0600, owner ${owner})`, refused: '' },
        { path: '/link', state: 'symlink', what: 'a symbolic link to motd', refused: '' },
        { path: '/folder', state: 'directory', what: 'a directory', refused: '' },
        { path: '/motd/x', state: 'unreachable', what: '/motd is not a directory', refused: '' },
        { path: 'motd', state: 'unreachable', what: 'path "motd" is not absolute', refused: '' },
      ],
      busy: false,
    });
    await host.bus.roll(config());
    expect((await look('/own')).found).toMatchObject([{ path: '/own', state: 'file' }]);
  });

  it('is compared with what would be there: the node says in advance what it would refuse, and then does', async () => {
    for (const folder of ['folder', 'var/state']) mkdirSync(host.path(folder), { recursive: true });
    symlinkSync('folder', host.path('link'));
    symlinkSync('no/where', host.path('dangling'));
    writeFileSync(host.path('su'), '');
    chmodSync(host.path('su'), 0o4755);
    await host.start({ stateDir: host.path('var/state') });
    await host.bus.roll(config(file('/own', 'ours')));
    const refusals: readonly (readonly [ConfigEntry, string])[] = [
      [directory('/dangling'), '/dangling is a symbolic link whose target does not exist'],
      [file('/folder', 'x'), '/folder is a directory'],
      [file('/new', 'x', '4755'), 'mode 4755 needs --allow-setuid on this node'],
      [file('/own', 'ours', '2755'), 'mode 2755 needs --allow-setuid on this node'],
      [file('/su', 'x'), '/su has mode 4755, and needs --allow-setuid on this node'],
      [file('/var/state/x', 'x'), '/var/state/x is in the state folder of the applier'],
    ];
    const entries = refusals.map(([entry]) => entry);
    expect(await refused(...entries, directory('/link'), file('/fine', 'x'))).toEqual({
      ...Object.fromEntries(
        refusals.map(([{ spec }, text]) => [spec['path'], expect.stringContaining(text) as string]),
      ),
      '/link': '',
    });
    const nothing = [
      { kind: 'File', name: 'x', labels: {} },
      { kind: 'Nothing', name: 'x', labels: {} },
    ];
    expect(await ask({ paths: ['/none'], entries: nothing })).toEqual({ found: [], busy: false });
    for (const [entry, text] of refusals) {
      const reason = expect.stringContaining(text) as string;
      expect(await host.bus.roll(config(entry))).toMatchObject({ verdict: 'failed', reason });
    }
  });

  const isRoot = process.geteuid?.() === 0;
  const needsRoot = isRoot ? '' : ' (skipped: only root can mount)';
  (isRoot ? it : it.skip)(`is refused if a file is mounted there${needsRoot}`, async () => {
    for (const path of ['a', 'b']) writeFileSync(host.path(path), path);
    await host.start();
    execFileSync('mount', ['--bind', host.path('a'), host.path('b')]);
    try {
      expect(await refused(file('/b', 'new'), file('/a', 'new'))).toEqual({
        '/a': '',
        '/b': '/b is a mount point, so it cannot be replaced: unmount it first, or manage the file that is mounted there by its own path',
      });
    } finally {
      execFileSync('umount', [host.path('b')]);
    }
  });

  it('is not looked for while a lease is in progress', async () => {
    writeFileSync(host.path('motd'), 'mine');
    await host.start();
    const waits = probe('waits', { file: { path: '/go', matches: '^go' }, timeout: '10s', retries: 100 });
    const id = host.bus.grant(config(file('/own', 'ours'), waits));
    await until(() => existsSync(host.path('own')), 'the change is in progress');
    expect(await look('/motd', '/own')).toEqual({ found: [], busy: true });
    expect(await look('/own')).toEqual({ found: [], busy: true });
    writeFileSync(host.path('go'), 'go');
    expect(await host.bus.reported(({ lease }) => lease === id)).toMatchObject({ verdict: 'applied' });
  });
});

it('decodes the bytes of a file from base64, and refuses an unknown encoding', async () => {
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

it('sends a heartbeat soon after its start, so that a node that restarts often does not become silent', async () => {
  await host.start({ heartbeatMs: 3_600_000 });
  expect(await until(() => host.bus.beats[0], 'the first heartbeat arrives')).toMatchObject({ everyMs: 3_600_000 });
});

it('sends heartbeats at the requested interval, and at its own when the request is withdrawn', async () => {
  await host.start({ heartbeatMs: 20 });
  const untilHeartbeat = (
    wanted: (beat: { readonly everyMs: number; readonly pacedMs: number }) => boolean,
  ): Promise<true> => until(() => host.bus.beats.some(wanted) || undefined, 'the heartbeat arrives');
  await untilHeartbeat(({ everyMs, pacedMs }) => everyMs === 20 && pacedMs === 0);
  host.bus.push({ pace: { everyMs: 60 } });
  await untilHeartbeat(({ everyMs, pacedMs }) => everyMs === 60 && pacedMs === 60);
  host.bus.push({ pace: { everyMs: 5 } });
  await untilHeartbeat(({ everyMs, pacedMs }) => everyMs === 20 && pacedMs === 5);
  host.bus.push({ pace: { everyMs: 1e300 } });
  await untilHeartbeat(({ everyMs, pacedMs }) => everyMs === 600_000 && pacedMs === 600_000);
});

it('waits for the streams of a new installation without a warning', async () => {
  const logged: string[] = [];
  const note = (level: string) => (_: object, message: string) => void logged.push(`${level} ${message}`);
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  let missing = 1;
  const status = host.bus.status.bind(host.bus);
  host.bus.status = () =>
    missing-- > 0 ? Promise.reject(Object.assign(new Error('stream not found'), { code: 10_059 })) : status();
  await host.start({ log });
  expect([
    logged.filter((line) => line.startsWith('warn')),
    logged.filter((line) => line.includes('NATS has no streams yet')),
  ]).toEqual([[], ['info NATS has no streams yet; waiting for the services to create them']]);
});

it('keeps a folder that a managed path still needs, and files that others put into one', async () => {
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

  it('that fails only with the new config makes it invalid, and everything is restored', async () => {
    writeFileSync(host.path('motd'), 'mine');
    chmodSync(host.path('motd'), 0o4711);
    const before = host.tree();
    await host.start({ allowSetuid: true });
    const report = await host.bus.roll(config(file('/motd', 'bad'), file('/new/file', 'x'), gate));
    expect(report).toMatchObject({ kind: 'invalid', probe: 'gate', restored: true, hash: EMPTY_HASH });
    expect(host.tree()).toEqual(before);
    expect(await host.bus.roll(config(file('/motd', 'good'), gate))).toMatchObject({ kind: 'applied' });
  });

  it('that also fails with the restored config makes the node fail', async () => {
    await host.start({ allowExec: true });
    const once = probe('once', { exec: { argv: ['/bin/sh', '-c', 'test ! -e ../once && touch ../once'] }, retries: 0 });
    const report = await host.bus.roll(config(file('/f', 'x'), once));
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toContain('probe once passed before and fails now');
    expect(host.tree()).toEqual({});
  });
});

describe('reports content that the node rejects as invalid, and leaves no trace', () => {
  it.each([
    ['a path with ..', [file('/a/../../out', 'x')]],
    ['a relative path', [file('out', 'x')]],
    ['a file below a file of the same config', [file('/p', 'x'), file('/p/q', 'x')]],
    ['two fragments at one path', [file('/p', 'x'), { ...file('/p/', 'y'), name: 'other' }]],
    ['an invalid mode', [file('/p', 'x', '0999')]],
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

describe('blames the node, not the config, for an obstacle on this machine, and leaves no trace', () => {
  it.each([
    ['a parent that is a link out of the root', [file('/outside/x', 'x')]],
    ['a parent that is a link to nowhere', [file('/nowhere/x', 'x')]],
    ['a file where a directory exists', [file('/folder', 'x')]],
    ['a directory where a file exists', [directory('/plain')]],
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

it('keeps a link to a folder, no matter what it manages inside', async () => {
  mkdirSync(host.path('x'));
  symlinkSync('x', host.path('dd'));
  const before = host.tree();
  await host.start();
  expect(await host.bus.roll(config(directory('/dd'), file('/dd/in/a', 'x')))).toMatchObject({ kind: 'applied' });
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
  expect(host.tree()).toEqual(before);
});

it('blames the node, not the config, for an obstacle that appeared later, and leaves it unchanged', async () => {
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
  const reports = await Promise.all(buses.map((bus) => bus.roll(config(file(`/${bus.node}`, 'x')))));
  expect(reports.flatMap(({ verdict, reason }) => (verdict === 'applied' ? [] : [reason]))).toEqual([]);
  await running.stop();
  expect(Object.keys(host.tree())).toHaveLength(200);
});

it('refuses unknown kinds, commands and actions, and blames the node', async () => {
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

it('runs an Exec if its check asks for it, and kills one that hangs', async () => {
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

describe('a check of an Exec that does not end in the time of the lease', () => {
  const exec = (...check: readonly string[]) => ({
    kind: 'Exec',
    name: 'e',
    spec: { check: { argv: check }, apply: { argv: ['touch', 'ran'] } },
  });
  beforeEach(() => host.start({ allowExec: true }));

  it('ends the lease before anything changes, if it hangs before the change', async () => {
    expect(await host.bus.roll(config(exec('sleep', '600'), file('/f', 'x')), { applyMs: 3_000 })).toMatchObject({
      kind: 'failed',
      untouched: true,
      reason: expect.stringMatching(/^nothing was started: Exec\/e: check: sleep was killed after \d+ ms$/) as string,
    });
    expect(host.tree()).toEqual({});
  });

  it('rolls the change back at its deadline, if it hangs after the change', async () => {
    const check = exec('/bin/sh', '-c', 'if [ -e ran ]; then exec sleep 600; else exit 1; fi');
    expect(await host.bus.roll(config(check, file('/f', 'x')), { applyMs: 12_000 })).toMatchObject({
      kind: 'failed',
      restored: true,
      notUndone: ['Exec/e'],
      reason: expect.stringMatching(
        /^not confirmed 8000 ms after the lease was read, because what was changed could not be read back: Exec\/e: check: \/bin\/sh was killed after \d+ ms; rolled back, except Exec\/e$/,
      ) as string,
    });
    expect(host.tree()).toEqual({ ran: '644 ' });
  });
});

it('undoes an Exec that ran in a change that is rolled back, and names the one that it cannot undo', async () => {
  await host.start({ allowExec: true });
  const exec = (name: string, more: object = {}) => ({
    kind: 'Exec',
    name,
    spec: { check: { argv: ['test', '-e', name] }, apply: { argv: ['touch', name] }, ...more },
  });
  const never = probe('never', { file: { path: '/never', matches: 'x' }, retries: 0 });
  const undo = { argv: ['rm', 'undoable'] };
  expect(await host.bus.roll(config(exec('undoable', { undo }), exec('lasting'), never))).toMatchObject({
    kind: 'failed',
    restored: true,
    notUndone: ['Exec/lasting'],
    reason: expect.stringMatching(/; rolled back, except Exec\/lasting$/) as string,
  });
  expect(host.tree()).toEqual({ lasting: '644 ' });
});

it('does not say that a command was not undone if it could not be started', async () => {
  await host.start({ allowExec: true });
  const run = (...argv: readonly string[]) =>
    host.bus.roll(config({ kind: 'Exec', name: 'e', spec: { check: { argv: ['false'] }, apply: { argv } } }));
  expect(await run('/none')).toMatchObject({
    kind: 'failed',
    notUndone: [],
    leftovers: [],
    reason: 'Exec/e: /none could not be run (spawn /none ENOENT)',
  });
  expect(await run('true', 'x'.repeat(200_000))).toMatchObject({
    kind: 'failed',
    notUndone: [],
    leftovers: [],
    reason: 'Exec/e: true could not be run (spawn E2BIG)',
  });
  expect(await run('')).toMatchObject({
    kind: 'invalid',
    reason: expect.stringContaining(
      'Exec/e: apply.argv must be a list of strings that begins with a program',
    ) as string,
  });
});

it('does not run the command of an Exec if its check has used up the time', async () => {
  // The check runs before the intent is journaled, and again before `apply`, when that time is over.
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

it('lets readers see the old or the new content, never a part', async () => {
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

it('reports drift once and repairs it with a lease', async () => {
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

it('survives an outage of NATS, and continues afterwards', async () => {
  host.bus.down = true;
  await host.start({ bus: async () => host.bus });
  await new Promise((resolve) => setTimeout(resolve, 100));
  host.bus.down = false;
  host.bus.push({});
  await host.bus.reported(({ kind }) => kind === 'announced');
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

  it('with a torn journal is used with the previous copy, and refused without one', async () => {
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

  it('of another node is refused, and does not stop other appliers of the process', async () => {
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
