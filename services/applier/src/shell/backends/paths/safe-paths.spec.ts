import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { config, directory, file, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';
import { resolvePath } from './rooted-path.js';

const USER = 4242;
const OTHER = 4343;
const why = process.geteuid?.() === 0 ? undefined : 'only root can make files of other users';
const suite = why === undefined ? describe : describe.skip;

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

/** Creates a folder of a user, whose parents belong to root. */
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
  ])('do not follow %s of a user to files of others', async (_name, target) => {
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

  it('do not restore an original through a link with which a user replaced the folder', async () => {
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
      const way = await resolvePath(theirs, '/a/b/f', { make: true });
      if ('missing' in way) throw new Error('nothing was made');
      way.parent.close();
      await expect(resolvePath(theirs, '/others/f', {})).rejects.toThrow(/belongs to user 4242/);
    } finally {
      process.seteuid?.(0);
      process.setegid?.(0);
    }
    expect(host.tree()).toMatchObject({ 'theirs/a/b': 'dir 755' });
    expect(lstatSync(host.path('theirs/a/b')).uid).toBe(USER);
  });
});

describe('a Directory that somebody replaced with another directory', () => {
  const mine = (path: string): void => mkdirSync(host.path(path), { mode: 0o700 });
  it.each([
    [
      'by pointing a link elsewhere',
      '/srv/cur',
      (): void => {
        mkdirSync(host.path('srv/v1'), { recursive: true });
        mine('srv/v2');
        symlinkSync('v1', host.path('srv/cur'));
      },
      (): void => {
        unlinkSync(host.path('srv/cur'));
        symlinkSync('v2', host.path('srv/cur'));
      },
    ],
    [
      'in place of the link',
      '/srv/cur',
      (): void => {
        mkdirSync(host.path('srv/v1'), { recursive: true });
        symlinkSync('v1', host.path('srv/cur'));
      },
      (): void => {
        unlinkSync(host.path('srv/cur'));
        mine('srv/cur');
      },
    ],
    [
      'after moving the first one away',
      '/srv/p',
      (): void => void mkdirSync(host.path('srv/p'), { recursive: true }),
      (): void => {
        renameSync(host.path('srv/p'), host.path('srv/p.old'));
        mine('srv/p');
      },
    ],
  ])('%s: neither a deletion nor a rollback changes its owner and mode', async (_name, path, build, replace) => {
    build();
    await host.start();
    expect(await host.bus.roll(config(directory(path, '0750')))).toMatchObject({ kind: 'applied' });
    replace();
    const before = host.tree();
    const report = await host.bus.roll(config());
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toMatch(/the directory \/srv\/\w+ was replaced since its owner and mode were saved/);
    expect(host.tree()).toEqual(before);
    chmodSync(host.path(path), 0o755);
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
  });

  it('is restored all the same if Sluice replaced it', async () => {
    mine('d');
    await host.start();
    expect(await host.bus.roll(config(directory('/d', '0750')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config(file('/d', 'x')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config(directory('/d', '0750')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).toEqual({ d: 'dir 700' });
  });
});

describe('the temporary file of a change', () => {
  const predictable = `.sluice-${createHash('sha256').update('hello').digest('hex').slice(0, 16)}.tmp`;

  it('has a name that nobody can occupy, and nothing that has such a name stops a change', async () => {
    mkdirSync(host.path('tmp'));
    await host.start();
    const first = file('/tmp/hello', 'x');
    expect(await host.bus.roll(config(first))).toMatchObject({ kind: 'applied' });
    mkdirSync(host.path(`tmp/${predictable}/x`), { recursive: true });
    expect(await host.bus.roll(config(first, file('/other', 'x')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config(file('/tmp/hello', 'y')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({
      tmp: 'dir 755',
      [`tmp/${predictable}`]: 'dir 755',
      [`tmp/${predictable}/x`]: 'dir 755',
    });
  });

  it('is removed by the next process if this one is killed, and nothing else is', async () => {
    mkdirSync(host.path('tmp/.sluice-0123456789abcdef.tmp'), { recursive: true });
    for (const name of [predictable, '.sluice-mine.tmp', '.sluice-0123456789abcdef.tmp.bak'])
      writeFileSync(host.path(`tmp/${name}`), name);
    symlinkSync('x', host.path('tmp/.sluice-00000000000000ff.tmp'));
    await host.start();
    expect(await host.bus.roll(config(file('/tmp/hello', 'x')))).toMatchObject({ kind: 'applied' });
    expect(Object.keys(host.tree())).toEqual([
      'tmp',
      'tmp/.sluice-0123456789abcdef.tmp.bak',
      'tmp/.sluice-mine.tmp',
      'tmp/hello',
    ]);
  });
});

suite(
  `a user who puts something in the way in their own folder${why === undefined ? '' : ` (skipped: ${why})`}`,
  () => {
    const theirs = {
      ...file('/home/u/sub/conf', 'x'),
      spec: { path: '/home/u/sub/conf', content: 'x', owner: '4242' },
    };
    const obstacles: [string, () => void][] = [
      [
        'a directory',
        (): void => {
          unlinkSync(host.path('home/u/sub/conf'));
          folderOf(USER, 'home/u/sub/conf/x');
        },
      ],
      [
        'a link to a folder of root',
        (): void => {
          renameSync(host.path('home/u/sub'), host.path('home/u/sub2'));
          linkOf(USER, 'home/u/sub', '/etc');
        },
      ],
      [
        'another hard link',
        (): void => {
          linkSync(host.path('home/u/sub/conf'), host.path('home/u/sub/other'));
          writeFileSync(host.path('home/u/sub/conf'), 'mine');
        },
      ],
      [
        'a pipe',
        (): void => {
          unlinkSync(host.path('home/u/sub/conf'));
          execFileSync('mkfifo', [host.path('home/u/sub/conf')]);
        },
      ],
    ];
    const open = probe('gate', { file: { path: '/gate', matches: '^open' } });
    /** Without contents, because nobody else may read a pipe. */
    const home = (): readonly string[] => readdirSync(host.path('home'), { recursive: true }).map(String).sort();

    beforeEach(async () => {
      folderOf(USER, 'home/u');
      folderOf(USER, 'home/u/sub');
      mkdirSync(host.path('etc'));
      await host.start();
      expect(await host.bus.roll(config(theirs, file('/gate', 'open')))).toMatchObject({ kind: 'applied' });
    });

    it.each(obstacles)(
      'with %s: no change fails that does not touch the path, nor its rollback',
      async (_name, put) => {
        put();
        const before = home();
        const failed = await host.bus.roll(config(theirs, file('/gate', 'shut'), open));
        expect(failed).toMatchObject({ kind: 'invalid', restored: true });
        const report = await host.bus.roll(config(theirs, file('/gate', 'open'), file('/etc/other', 'x')));
        expect(report).toMatchObject({ kind: 'applied', restored: true, changed: ['/etc/other'] });
        expect(report.reason).toContain('left as it is: File/home-u-sub-conf');
        expect([home(), readFileSync(host.path('etc/other'), 'utf8')]).toEqual([before, 'x']);
      },
    );

    it.each(obstacles)(
      'with %s: a change that touches the path fails before anything is changed',
      async (_name, put) => {
        put();
        const before = home();
        const changed = { ...theirs, spec: { ...theirs.spec, content: 'y' } };
        const report = await host.bus.roll(config(changed, file('/etc/other', 'x'), file('/gate', 'open')));
        expect(report).toMatchObject({ kind: 'failed', restored: true });
        expect([home(), existsSync(host.path('etc/other'))]).toEqual([before, false]);
        expect(await host.bus.roll(config(theirs, file('/gate', 'open')))).toMatchObject({ restored: true });
      },
    );

    it('with a link to a folder of root: the deletion of the fragment fails before anything is changed', async () => {
      renameSync(host.path('home/u/sub'), host.path('home/u/sub2'));
      linkOf(USER, 'home/u/sub', '/etc');
      const before = [home(), host.tree()];
      const report = await host.bus.roll(config(file('/gate', 'open'), file('/etc/other', 'x')));
      expect(report).toMatchObject({ kind: 'failed', restored: true });
      expect(report.reason).toContain('/home/u/sub belongs to user 4242');
      expect([home(), host.tree()]).toEqual(before);
    });
  },
);

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

it('restores an original only into the folder that it came from, until the machine restarts', async () => {
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

describe('two paths that a later link leads to one place', () => {
  const [one, two] = [file('/srv/one/x', 'x'), file('/srv/two/x', 'x')];
  const shared = '/srv/two/x leads to the same place as /srv/one/x of File/srv-one-x, because /srv/two is a link';
  const join = (): void => {
    rmSync(host.path('srv/two'), { recursive: true });
    symlinkSync('one', host.path('srv/two'));
  };
  const start = async (): Promise<void> => {
    await host.start();
    expect(await host.bus.roll(config(one, two))).toMatchObject({ kind: 'applied' });
    join();
  };

  it('do not fail a change of another path', async () => {
    await start();
    const report = await host.bus.roll(config(one, two, file('/other', 'x')));
    expect(report).toMatchObject({
      kind: 'applied',
      changed: ['/other'],
      reason: `left as it is: File/srv-two-x: ${shared}`,
    });
  });

  it.each([
    [
      'the path through the link',
      [one],
      { srv: 'dir 755', 'srv/one': 'dir 755', 'srv/one/x': '644 x', 'srv/two': '-> one' },
    ],
    ['the other path', [two], { srv: 'dir 755', 'srv/one': 'dir 755', 'srv/one/x': '644 x', 'srv/two': '-> one' }],
    ['both', [], { srv: 'dir 755', 'srv/two': '-> one' }],
  ])('can be deleted: %s', async (_name, left, tree) => {
    await start();
    expect(await host.bus.roll(config(...left))).toMatchObject({ kind: 'applied', restored: true });
    expect(host.tree()).toEqual(tree);
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).not.toHaveProperty('srv/one/x');
  });

  it('keep an original that cannot be restored there, and the reason names the link', async () => {
    mkdirSync(host.path('srv/two'), { recursive: true });
    writeFileSync(host.path('srv/two/x'), 'mine');
    await start();
    const before = host.tree();
    expect(await host.bus.roll(config(one))).toMatchObject({
      kind: 'failed',
      restored: true,
      reason: `/srv/two/x: what was there before cannot be restored: ${shared}: remove the link first`,
    });
    expect(host.tree()).toEqual(before);
  });
});

describe('what a deleted fragment put into a folder that was replaced', () => {
  const link = { kind: 'Link', name: 'l', spec: { path: '/d/x', target: 'managed' } };
  it.each([
    ['file', file('/d/x', 'managed'), () => writeFileSync(host.path('d/x'), 'precious')],
    ['link', link, () => symlinkSync('precious', host.path('d/x'))],
    ['directory', directory('/d/x'), () => mkdirSync(host.path('d/x'))],
  ])('does not cost somebody else the %s that is there now', async (_name, entry, createPrecious) => {
    mkdirSync(host.path('d'));
    await host.start();
    expect(await host.bus.roll(config(entry))).toMatchObject({ kind: 'applied' });
    renameSync(host.path('d'), host.path('aside'));
    mkdirSync(host.path('d'));
    createPrecious();
    const before = host.tree();
    const report = await host.bus.roll(config());
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toContain(
      'the folder /d was replaced since the original was saved, so /d/x is not removed: move it away or remove it by hand',
    );
    expect(host.tree()).toEqual(before);
    rmSync(host.path('d/x'), { recursive: true });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
  });

  it('stays where it is if a link above it was pointed elsewhere', async () => {
    mkdirSync(host.path('srv/real'), { recursive: true });
    fileOf(process.geteuid?.() ?? 0, 'srv/other/x', 'precious');
    symlinkSync('real', host.path('srv/alias'));
    await host.start();
    expect(await host.bus.roll(config(file('/srv/alias/x', 'managed')))).toMatchObject({ kind: 'applied' });
    unlinkSync(host.path('srv/alias'));
    symlinkSync('other', host.path('srv/alias'));
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'failed', restored: true });
    expect(host.tree()).toMatchObject({ 'srv/other/x': '644 precious', 'srv/real/x': '644 managed' });
  });

  it('does not cost somebody else a link in place of a folder that Sluice created', async () => {
    await host.start();
    expect(await host.bus.roll(config(file('/made/x', 'managed')))).toMatchObject({ kind: 'applied' });
    renameSync(host.path('made'), host.path('moved'));
    symlinkSync('moved', host.path('made'));
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).toEqual({ made: '-> moved', moved: 'dir 755' });
  });
});
