import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { config, directory, file, Host, probe } from '../../applier-host.fixture.js';
import { neededFileCalls, type Xattrs } from '../../file-calls.js';
import { EMPTY_HASH } from '../../index.js';

const isRoot = process.geteuid?.() === 0;
const itAsRoot = isRoot ? it : it.skip;
const as = (name: string): string => (isRoot ? name : `${name} (skipped: only root can give files away)`);

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

const withSpec = (entry: ConfigEntry, spec: object): ConfigEntry => ({ ...entry, spec: { ...entry.spec, ...spec } });
const gate = probe('gate', { file: { path: '/gate', matches: '^open' } });
const shut = [file('/gate', 'shut'), gate];

function xattrsOf(path: string, set?: Xattrs): Xattrs {
  const fd = openSync(host.path(path), 'r');
  try {
    if (set !== undefined) neededFileCalls().setXattrs(fd, set);
    return neededFileCalls().xattrs(fd);
  } finally {
    closeSync(fd);
  }
}
const ownerOf = (path: string): string => {
  const { uid, gid, mode } = lstatSync(host.path(path));
  return `${uid}:${gid} ${(mode & 0o7777).toString(8)}`;
};

describe('a file that replaces another', () => {
  itAsRoot(as('keeps its owner, group, mode and extended attributes, and so does what is restored'), async () => {
    writeFileSync(host.path('f'), 'mine');
    chownSync(host.path('f'), 33, 34);
    chmodSync(host.path('f'), 0o640);
    const note = { 'user.note': Buffer.from([0, 255]).toString('base64') };
    xattrsOf('f', note);
    utimesSync(host.path('f'), 1_000_000, 1_000_000.5);
    await host.start();
    expect(await host.bus.roll(config(file('/f', 'x')))).toMatchObject({ kind: 'applied', changed: ['/f'] });
    expect([ownerOf('f'), xattrsOf('f'), readFileSync(host.path('f'), 'utf8')]).toEqual(['33:34 640', note, 'x']);
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect([ownerOf('f'), xattrsOf('f'), readFileSync(host.path('f'), 'utf8')]).toEqual(['33:34 640', note, 'mine']);
    expect(lstatSync(host.path('f')).mtimeMs).toBe(1_000_000_500);
  });

  it.each(['1969-12-31 23:59:59.5', '1969-12-31 23:59:58', '1901-01-01 00:00:00.000000001', '2299-01-01 00:00:00.9'])(
    'comes back with its time of %s',
    async (time) => {
      writeFileSync(host.path('f'), 'mine');
      execFileSync('touch', ['-d', `${time} UTC`, host.path('f')]);
      const before = lstatSync(host.path('f'), { bigint: true }).mtimeNs;
      await host.start();
      expect(await host.bus.roll(config(file('/f', 'x'), ...shut))).toMatchObject({ kind: 'failed', restored: true });
      expect(lstatSync(host.path('f'), { bigint: true }).mtimeNs).toBe(before);
      expect(await host.bus.roll(config(file('/f', 'x')))).toMatchObject({ kind: 'applied' });
      expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
      expect(lstatSync(host.path('f'), { bigint: true }).mtimeNs).toBe(before);
    },
  );

  itAsRoot(as('belongs to whom the fragment says, by name or number'), async () => {
    mkdirSync(host.path('etc'));
    writeFileSync(host.path('etc/passwd'), 'web:x:3333:1::/:/bin/sh\n');
    writeFileSync(host.path('etc/group'), 'web:x:4444:\n');
    writeFileSync(host.path('f'), 'mine');
    await host.start({ driftCheckMs: 40 });
    const wanted = [
      withSpec(file('/f', 'mine', '0600'), { owner: 'web', group: 'web' }),
      withSpec(directory('/d'), { owner: '55', group: 'web' }),
    ];
    expect(await host.bus.roll(config(...wanted))).toMatchObject({ kind: 'applied', changed: ['/d', '/f'] });
    expect([ownerOf('f'), ownerOf('d')]).toEqual(['3333:4444 600', '55:4444 755']);
    chownSync(host.path('f'), 0, 4444);
    const { differences } = await host.bus.reported(({ kind }) => kind === 'drifted');
    expect(differences).toEqual(['/f: owner 0 instead of 3333']);
    const ghost = await host.bus.roll(config(withSpec(file('/g', 'x'), { owner: 'ghost' })));
    expect([ghost.kind, ghost.reason]).toEqual(['failed', expect.stringContaining('there is no user ghost')]);
  });

  it('is refused if it has other hard links, unless they may keep the old content', async () => {
    writeFileSync(host.path('f'), 'mine');
    linkSync(host.path('f'), host.path('other'));
    await host.start();
    const refused = await host.bus.roll(config(file('/f', 'x')));
    expect(refused).toMatchObject({ kind: 'failed', restored: true, hash: EMPTY_HASH });
    expect(refused.reason).toContain('/f has 2 hard links, and the others would keep the old content');
    expect(lstatSync(host.path('f')).ino).toBe(lstatSync(host.path('other')).ino);
    expect(await host.bus.roll(config(file('/f', 'mine')))).toMatchObject({ kind: 'applied' });
    const allowed = withSpec(file('/f', 'x'), { hardLinks: 'break' });
    expect(await host.bus.roll(config(allowed))).toMatchObject({ kind: 'applied' });
    expect([readFileSync(host.path('f'), 'utf8'), readFileSync(host.path('other'), 'utf8')]).toEqual(['x', 'mine']);
  });
});

describe('a rollback', () => {
  itAsRoot(as('brings back what was there before this lease, also what had drifted'), async () => {
    await host.start();
    const first = [file('/a', 'a'), file('/b', 'b'), file('/gate', 'open'), directory('/d')];
    await host.bus.roll(config(...first));
    chownSync(host.path('a'), 33, 33);
    chmodSync(host.path('a'), 0o604);
    xattrsOf('a', { 'user.note': 'AAE=' });
    writeFileSync(host.path('b'), 'edited');
    chmodSync(host.path('d'), 0o711);
    const seen = (): unknown => [
      host.tree(),
      ownerOf('a'),
      xattrsOf('a'),
      lstatSync(host.path('a')).mtimeMs,
      lstatSync(host.path('b')).mtimeMs,
    ];
    const before = seen();
    const second = [
      withSpec(file('/a', 'new', '0666'), { owner: '44' }),
      file('/b', 'new'),
      withSpec(directory('/d', '0700'), { owner: '44' }),
      ...shut,
    ];
    expect(await host.bus.roll(config(...second))).toMatchObject({ kind: 'invalid', restored: true });
    expect(seen()).toEqual(before);
    // One that deletes them is undone in the same way.
    expect(await host.bus.roll(config(...shut))).toMatchObject({ kind: 'invalid', restored: true });
    expect(seen()).toEqual(before);
  });
});

describe('a link whose target is not UTF-8', () => {
  const target = Buffer.from('bad\xff\xfename', 'latin1');
  const seen = (): Buffer => readlinkSync(host.path('l'), { encoding: 'buffer' });

  it.each([
    ['Link', { kind: 'Link', name: 'l', spec: { path: '/l', target: 'bad\ufffd\ufffdname' } }],
    ['File', file('/l', 'x')],
  ])('is the same after a %s in its place failed or was deleted', async (_kind, entry) => {
    symlinkSync(target, host.path('l'));
    await host.start();
    expect(await host.bus.roll(config(entry, ...shut))).toMatchObject({ kind: 'failed', restored: true });
    expect(seen()).toEqual(target);
    expect(await host.bus.roll(config(entry))).toMatchObject({ kind: 'applied', changed: ['/l'] });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(seen()).toEqual(target);
  });

  it('is not followed to what has the same name as a text', async () => {
    symlinkSync(target, host.path('l'));
    mkdirSync(host.path(target.toString()));
    await host.start();
    const report = await host.bus.roll(config(file('/l/x', 'x')));
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toContain('/l is a symbolic link whose target is not UTF-8');
  });
});

describe('a Directory at a link to a directory', () => {
  it('is the directory that the link leads to', async () => {
    mkdirSync(host.path('real'), { mode: 0o750 });
    writeFileSync(host.path('real/theirs'), 'x');
    symlinkSync('real', host.path('alias'));
    const before = host.tree();
    await host.start();
    expect(await host.bus.roll(config(directory('/alias', '0700')))).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ ...before, real: 'dir 700' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).toEqual(before);
  });

  it('is not replaced by a File', async () => {
    mkdirSync(host.path('real'));
    symlinkSync('real', host.path('alias'));
    await host.start();
    const report = await host.bus.roll(config(file('/alias', 'x')));
    expect([report.kind, report.reason]).toEqual([
      'failed',
      expect.stringContaining('/alias is a symbolic link to a directory'),
    ]);
    expect(readlinkSync(host.path('alias'))).toBe('real');
  });
});

describe('a Link in place of a Directory', () => {
  it('is refused before anything is changed, because a rollback would follow the link', async () => {
    mkdirSync(host.path('d'), { mode: 0o750 });
    await host.start();
    expect(await host.bus.roll(config(directory('/d', '0711')))).toMatchObject({ kind: 'applied' });
    const before = host.tree();
    const link: ConfigEntry = { kind: 'Link', name: 'l', spec: { path: '/d', target: 'd2' } };
    const report = await host.bus.roll(config(directory('/d2', '0711'), link));
    expect([report.kind, report.reason]).toEqual([
      'failed',
      expect.stringContaining('delete Directory/d-d first, and add this fragment in another change'),
    ]);
    expect(host.tree()).toEqual(before);
  });
});

describe('two paths that lead to one place', () => {
  it('are announced where the link is one of the machine', async () => {
    mkdirSync(host.path('usr/bin'), { recursive: true });
    symlinkSync('usr/bin', host.path('bin'));
    symlinkSync('/usr/bin', host.path('usr/sbin'));
    await host.start();
    expect(host.bus.reports[0]?.capabilities).toEqual(
      expect.arrayContaining(['path:/bin=/usr/bin', 'path:/usr/sbin=/usr/bin']),
    );
    const twice = await host.bus.roll(config(file('/bin/x', 'x'), file('/usr/bin/x', 'x')));
    expect([twice.kind, twice.reason]).toEqual(['invalid', expect.stringContaining('both manage path:/usr/bin/x')]);
    // The same file by another path: its original is still what was there before Sluice.
    writeFileSync(host.path('usr/bin/y'), 'mine');
    const named = (path: string): ConfigEntry => ({ ...file(path, 'x'), name: 'y' });
    expect(await host.bus.roll(config(named('/bin/y')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config(named('/usr/bin/y')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(readFileSync(host.path('usr/bin/y'), 'utf8')).toBe('mine');
  });

  it('are told apart when such a link is switched: nothing is written until the applier restarts', async () => {
    for (const folder of ['srv/d1', 'srv/d2']) mkdirSync(host.path(folder), { recursive: true });
    writeFileSync(host.path('srv/d2/x'), 'precious');
    symlinkSync('srv/d1', host.path('data'));
    const applier = await host.start();
    expect(await host.bus.roll(config(file('/data/x', 'v1')))).toMatchObject({ kind: 'applied' });
    rmSync(host.path('data'));
    symlinkSync('srv/d2', host.path('data'));
    const switched = '/data leads to /srv/d2, but led to /srv/d1 when the applier started: restart the applier';
    const reason = expect.stringContaining(switched) as string;
    expect(await host.bus.roll(config(file('/data/x', 'v2')))).toMatchObject({ kind: 'failed', reason });
    const other = config(file('/data/x', 'v1'), file('/other', 'x'));
    expect(await host.bus.roll(other)).toMatchObject({ kind: 'applied', changed: ['/other'], reason });
    expect(readFileSync(host.path('srv/d2/x'), 'utf8')).toBe('precious');
    await applier.stop();
    await host.start();
    expect(await host.bus.roll(config(file('/data/x', 'v2')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(readFileSync(host.path('srv/d2/x'), 'utf8')).toBe('precious');
    expect(existsSync(host.path('srv/d1/x'))).toBe(false);
  });

  it('are refused where only the node knows of the link', async () => {
    mkdirSync(host.path('srv/real'), { recursive: true });
    symlinkSync('real', host.path('srv/alias'));
    await host.start();
    const twice = await host.bus.roll(config(file('/srv/alias/x', 'x'), file('/srv/real/x', 'x')));
    expect(twice).toMatchObject({ kind: 'failed', restored: true, hash: EMPTY_HASH });
    expect(twice.reason).toContain('/srv/real/x leads to the same place as /srv/alias/x of File/srv-alias-x');
    await host.bus.roll(config(file('/srv/alias/x', 'x')));
    const other = await host.bus.roll(config(file('/srv/real/x', 'y')));
    expect(other).toMatchObject({ kind: 'failed', restored: true });
    expect(other.reason).toContain('leads to the same place as /srv/alias/x, which is managed by that path');
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).not.toHaveProperty('srv/real/x');
  });
});

describe('what is refused before anything begins', () => {
  it('is the state folder of the applier, by whatever path', async () => {
    const state = host.path('var/state');
    symlinkSync('var/state', host.path('alias'));
    await host.start({ stateDir: state });
    for (const entry of [
      file('/var/state/journal.json', 'x'),
      file('/alias/originals/x', 'x'),
      directory('/var/state', '0777'),
      directory('/alias', '0777'),
    ]) {
      const report = await host.bus.roll(config(entry));
      expect([report.kind, report.reason]).toEqual(['failed', expect.stringContaining('in the state folder')]);
    }
    expect(lstatSync(state).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(state, 'journal.json'), 'utf8')).toContain('sha256');
  });

  itAsRoot(as('is the state folder of the applier, also through a mount'), async () => {
    const state = host.path('var/state');
    for (const path of ['var/state/originals', 'mnt/all', 'mnt/one']) mkdirSync(host.path(path), { recursive: true });
    const mode = lstatSync(state).mode & 0o777;
    const mounts = [
      ['var', 'mnt/all'],
      ['var/state/originals', 'mnt/one'],
    ] as const;
    for (const [from, to] of mounts) execFileSync('mount', ['--bind', host.path(from), host.path(to)]);
    try {
      await host.start({ stateDir: state });
      for (const entry of [
        file('/mnt/all/state/journal.json', 'x'),
        file('/mnt/all/state/originals/x', 'x'),
        file('/mnt/all/state/new/x', 'x'),
        file('/mnt/one/x', 'x'),
        directory('/mnt/all/state', '0777'),
        directory('/mnt/all/state/configs', '0777'),
      ]) {
        const report = await host.bus.roll(config(entry));
        expect([report.kind, report.reason]).toEqual(['failed', expect.stringContaining('in the state folder')]);
      }
      expect(lstatSync(state).mode & 0o777).toBe(mode);
      expect(await host.bus.roll(config(file('/mnt/all/x', 'x')))).toMatchObject({ kind: 'applied' });
    } finally {
      await host.stop();
      for (const [, to] of mounts) execFileSync('umount', [host.path(to)]);
    }
  });

  describe('what something is mounted on', () => {
    const MOUNT = 'is a mount point, so';
    /** Mounts one path of the node on another while a test runs. */
    async function whileMounted(from: string, to: string, work: () => Promise<void>): Promise<void> {
      execFileSync('mount', ['--bind', host.path(from), host.path(to)]);
      try {
        await work();
      } finally {
        await host.stop();
        execFileSync('umount', [host.path(to)]);
      }
    }
    const refusedWith = (reason: string) => ({ kind: 'failed', restored: true, untouched: true, reason });

    itAsRoot(as('is a file or link, which would replace it'), async () => {
      writeFileSync(host.path('a'), 'a');
      writeFileSync(host.path('b'), 'b');
      await host.start();
      await whileMounted('a', 'b', async () => {
        const why = `/b ${MOUNT} it cannot be replaced: unmount it first, or manage the file that is mounted there by its own path`;
        expect(await host.bus.roll(config(file('/b', 'new')))).toMatchObject(refusedWith(`File/b: ${why}`));
        const link: ConfigEntry = { kind: 'Link', name: 'l', spec: { path: '/b', target: 'a' } };
        expect(await host.bus.roll(config(link))).toMatchObject(refusedWith(`Link/l: ${why}`));
        // Nothing has to be written.
        expect(await host.bus.roll(config(file('/b', 'a')))).toMatchObject({ kind: 'applied' });
        expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
      });
      expect(readFileSync(host.path('b'), 'utf8')).toBe('b');
    });

    itAsRoot(as('is a directory or file that would be removed'), async () => {
      mkdirSync(host.path('a'));
      writeFileSync(host.path('x'), 'x');
      const good = config(directory('/b', '0755'), file('/f', 'f'));
      await host.start();
      expect(await host.bus.roll(good)).toMatchObject({ kind: 'applied' });
      await whileMounted('a', 'b', async () => {
        const rest = config(file('/f', 'f'));
        expect(await host.bus.roll(rest)).toMatchObject(
          refusedWith(`/b: ${MOUNT} Directory/d-b cannot be deleted: unmount it first`),
        );
        expect(await host.bus.roll(config(directory('/b', '0700'), file('/f', 'f')))).toMatchObject({
          kind: 'applied',
        });
      });
      await host.start();
      await whileMounted('x', 'f', async () => {
        expect(await host.bus.roll(config(directory('/b', '0700')))).toMatchObject(
          refusedWith(`/f: ${MOUNT} File/f cannot be deleted: unmount it first`),
        );
      });
      await host.start();
      expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
      expect(Object.keys(host.tree())).not.toEqual(expect.arrayContaining(['b']));
    });
  });

  it('is a link that leads to the state folder of the applier, and what it leads to', async () => {
    mkdirSync(host.path('data/lib'), { recursive: true });
    mkdirSync(host.path('disk/st/originals'), { recursive: true });
    mkdirSync(host.path('var'));
    symlinkSync('../data/lib', host.path('var/lib'));
    symlinkSync('disk', host.path('other'));
    symlinkSync('../../other/st', host.path('data/lib/sluice'));
    await host.start({ stateDir: host.path('var/lib/sluice') });
    const seen = (): readonly string[] => Object.keys(host.tree()).filter((path) => !path.startsWith('disk/st/'));
    const before = seen();
    const link = (path: string): ConfigEntry => ({ kind: 'Link', name: 'l', spec: { path, target: '/tmp' } });
    for (const entry of [
      link('/var/lib'),
      link('/other'),
      link('/data/lib/sluice'),
      file('/disk/st/originals/x', 'x'),
      directory('/disk/st', '0777'),
      directory('/var/lib/sluice', '0777'),
    ]) {
      const report = await host.bus.roll(config(entry));
      expect([entry, report.kind, report.reason]).toEqual([
        entry,
        'failed',
        expect.stringContaining('the state folder of the applier, which no fragment may change'),
      ]);
    }
    expect(seen()).toEqual(before);
    expect(await host.bus.roll(config(directory('/var/lib', '0750')))).toMatchObject({ kind: 'applied' });
  });

  it.each([
    ['a file that gets setuid', [file('/new', 'x', '4755')]],
    ['a directory that gets setgid', [directory('/new', '2775')]],
    ['a file that has setuid, and could not be restored', [file('/suid', 'x', '0755')]],
    ['a file that would keep its setuid', [file('/suid', 'x')]],
  ])('is %s, unless the node allows it', async (_name, fragments) => {
    writeFileSync(host.path('suid'), 'mine');
    chmodSync(host.path('suid'), 0o4755);
    const before = host.tree();
    const applier = await host.start();
    const report = await host.bus.roll(config(...fragments));
    expect(report).toMatchObject({ kind: 'failed', restored: true, hash: EMPTY_HASH });
    expect(report.reason).toContain('needs --allow-setuid on this node');
    expect(host.tree()).toEqual(before);
    await applier.stop();
    await host.start({ allowSetuid: true });
    expect(await host.bus.roll(config(...fragments))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).toEqual(before);
  });
});

it('does not remove the folder to which a link leads that somebody put in place of a managed directory', async () => {
  const host = new Host();
  try {
    mkdirSync(host.path('mine'));
    await host.start();
    expect(await host.bus.roll(config(directory('/d', '0755')))).toMatchObject({ kind: 'applied' });
    rmSync(host.path('d'), { recursive: true });
    symlinkSync('mine', host.path('d'));
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ d: '-> mine', mine: 'dir 755' });
  } finally {
    await host.end();
  }
});

it('removes a directory that it created where a link leads', async () => {
  const host = new Host();
  try {
    symlinkSync('there', host.path('d'));
    await host.start();
    expect(await host.bus.roll(config(directory('/d')))).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ d: '-> there', there: 'dir 755' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ d: '-> there' });
  } finally {
    await host.end();
  }
});
