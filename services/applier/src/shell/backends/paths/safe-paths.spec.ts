import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { config, directory, file, Host } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';
import { wayTo } from './rooted-path.js';

const USER = 4242;
const OTHER = 4343;
const why = process.geteuid?.() === 0 ? undefined : 'only root can make files of other users';
const suite = why === undefined ? describe : describe.skip;

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

/** Makes a folder of a user, whose parents are root's. */
function folderOf(uid: number, path: string): void {
  mkdirSync(host.path(path), { recursive: true });
  chownSync(host.path(path), uid, uid);
}
function linkOf(uid: number, path: string, target: string): void {
  symlinkSync(target, host.path(path));
  lchownSync(host.path(path), uid, uid);
}
function fileOf(uid: number, path: string, content: string): void {
  mkdirSync(dirname(host.path(path)), { recursive: true });
  writeFileSync(host.path(path), content);
  chownSync(host.path(path), uid, uid);
}

suite(`paths with folders of other users${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  it.each([
    ['an absolute link', '/etc/cron.d'],
    ['a relative link', '../../../etc/cron.d'],
  ])('do not lead through %s of a user to what is not theirs', async (_name, target) => {
    folderOf(USER, 'srv/app/home');
    mkdirSync(host.path('etc/cron.d'), { recursive: true });
    linkOf(USER, 'srv/app/home/conf', target);
    const before = host.tree();
    await host.start();
    const report = await host.bus.roll(config(file('/srv/app/home/conf/evil', 'evil')));
    expect(report).toMatchObject({ kind: 'failed', restored: true, hash: EMPTY_HASH });
    expect(report.reason).toMatch(/\/srv\/app\/home\/conf belongs to user 4242, who could make it lead anywhere/);
    expect(host.tree()).toEqual(before);
  });

  it('do not lead through a link of a user in a folder for everybody', async () => {
    mkdirSync(host.path('etc'));
    mkdirSync(host.path('tmp'));
    linkOf(USER, 'tmp/mine', '../etc');
    await host.start();
    expect(await host.bus.roll(config(file('/tmp/mine/passwd', 'evil')))).toMatchObject({ kind: 'failed' });
    expect(host.tree()).toMatchObject({ etc: 'dir 755', 'tmp/mine': '-> ../etc' });
    expect(existsSync(host.path('etc/passwd'))).toBe(false);
  });

  it("do not enter a folder of another user's in a user's folder, nor give it away", async () => {
    folderOf(USER, 'home');
    folderOf(OTHER, 'home/swapped');
    await host.start();
    for (const entry of [file('/home/swapped/f', 'x'), directory('/home/swapped', '0777')])
      expect(await host.bus.roll(config(entry))).toMatchObject({ kind: 'failed', restored: true });
    expect(host.tree()).toEqual({ home: 'dir 755', 'home/swapped': 'dir 755' });
  });

  it("lead through a user's links among their own folders", async () => {
    folderOf(USER, 'home');
    folderOf(USER, 'home/real');
    linkOf(USER, 'home/alias', 'real/../real');
    await host.start();
    expect(await host.bus.roll(config(file('/home/alias/f', 'x')))).toMatchObject({ kind: 'applied' });
    expect(readFileSync(host.path('home/real/f'), 'utf8')).toBe('x');
  });

  it('lead to new folders that belong to the user in whose folder they are, and can be entered again', async () => {
    folderOf(USER, 'home');
    await host.start();
    expect(await host.bus.roll(config(file('/home/a/b/f', 'x'), directory('/home/d')))).toMatchObject({
      kind: 'applied',
    });
    expect(['home/a', 'home/a/b', 'home/d'].map((path) => lstatSync(host.path(path)).uid)).toEqual([USER, USER, USER]);
    expect(
      await host.bus.roll(config(file('/home/a/b/f', 'y'), directory('/home/d'), file('/home/d/g', 'z'))),
    ).toMatchObject({
      kind: 'applied',
    });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ home: 'dir 755' });
  });

  it('do not bring an original back through a link that a user put in the place of the folder', async () => {
    mkdirSync(host.path('etc/systemd/system'), { recursive: true });
    folderOf(USER, 'srv/app');
    folderOf(USER, 'srv/app/conf');
    fileOf(USER, 'srv/app/conf/evil.service', 'evil');
    await host.start();
    expect(await host.bus.roll(config(file('/srv/app/conf/evil.service', 'good')))).toMatchObject({ kind: 'applied' });
    renameSync(host.path('srv/app/conf'), host.path('srv/app/aside'));
    linkOf(USER, 'srv/app/conf', '/etc/systemd/system');
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'failed', restored: true });
    expect(Object.keys(host.tree()).filter((path) => path.startsWith('etc/'))).toEqual([
      'etc/systemd',
      'etc/systemd/system',
    ]);
  });

  it('let an ordinary user work in their own tree, and not beyond', async () => {
    folderOf(USER, 'theirs');
    folderOf(OTHER, 'theirs/others');
    const theirs = host.path('theirs');
    chmodSync(host.folder, 0o755);
    process.setegid?.(USER);
    process.seteuid?.(USER);
    try {
      const way = await wayTo(theirs, '/a/b/f', { make: true });
      if ('missing' in way) throw new Error('nothing was made');
      way.parent.close();
      await expect(wayTo(theirs, '/others/f', {})).rejects.toThrow(/belongs to user 4242/);
    } finally {
      process.seteuid?.(0);
      process.setegid?.(0);
    }
    expect(host.tree()).toMatchObject({ 'theirs/a/b': 'dir 755' });
    expect(lstatSync(host.path('theirs/a/b')).uid).toBe(USER);
  });
});

describe('links in a root', () => {
  it('mean what they mean inside: an absolute one starts there, and none leads above it', async () => {
    mkdirSync(host.path('usr/lib'), { recursive: true });
    mkdirSync(host.path('etc'));
    symlinkSync('/usr/lib', host.path('lib'));
    symlinkSync('../../../../../../..', host.path('up'));
    await host.start();
    expect(await host.bus.roll(config(file('/lib/x', 'x'), file('/up/etc/y', 'y')))).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toMatchObject({ 'usr/lib/x': '644 x', 'etc/y': '644 y' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).not.toHaveProperty('usr/lib/x');
  });

  it('that lead in a circle are refused', async () => {
    symlinkSync('b', host.path('a'));
    symlinkSync('a', host.path('b'));
    await host.start();
    const report = await host.bus.roll(config(file('/a/x', 'x')));
    expect([report.kind, report.reason]).toEqual(['failed', expect.stringContaining('too many symbolic links')]);
  });
});

it('puts an original only into the folder that it came from, until the machine restarts', async () => {
  mkdirSync(host.path('d'));
  writeFileSync(host.path('d/f'), 'mine');
  const applier = await host.start({ bootId: 'boot-1' });
  expect(await host.bus.roll(config(file('/d/f', 'x')))).toMatchObject({ kind: 'applied' });
  renameSync(host.path('d'), host.path('aside'));
  mkdirSync(host.path('d'));
  const report = await host.bus.roll(config());
  expect(report).toMatchObject({ kind: 'failed', restored: true });
  expect(report.reason).toContain('the folder /d was replaced since the original was saved');
  expect(host.tree()).toEqual({ aside: 'dir 755', 'aside/f': '644 x', d: 'dir 755' });
  await applier.stop();
  await host.start({ bootId: 'boot-2' });
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
  expect(host.tree()).toMatchObject({ 'd/f': '644 mine' });
});
