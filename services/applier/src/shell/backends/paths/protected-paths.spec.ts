import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { SmallDisk, whyNoSmallDisk } from '../../../testing/small-disk.js';
import { config, directory, file, Host } from '../../applier-host.fixture.js';
import { putFile } from './path-changes.js';

const link = (path: string): ConfigEntry => ({ kind: 'Link', name: 'l', spec: { path, target: '/t' } });
const chattr = (flag: string, path: string): boolean => spawnSync('chattr', [flag, path]).status === 0;

/** Only root may set these flags, and not every file system has them. */
function whyNot(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-chattr-'));
  const works = chattr('+a', folder) && chattr('-a', folder);
  rmSync(folder, { recursive: true });
  return works ? undefined : 'chattr does not work here';
}

(whyNot() === undefined ? describe : describe.skip)('what chattr protects', () => {
  let host: Host;
  let flagged: string[];
  const protect = (flag: 'i' | 'a', path: string): void => {
    expect(chattr(`+${flag}`, host.path(path))).toBe(true);
    flagged.push(host.path(path));
  };
  beforeEach(async () => {
    host = new Host();
    flagged = [];
    mkdirSync(host.path('d'));
    writeFileSync(host.path('d/f'), 'old');
    chmodSync(host.path('d/f'), 0o644);
    mkdirSync(host.path('d/below'));
    await host.start();
  });
  afterEach(async () => {
    for (const path of flagged) chattr('-ia', path);
    await host.end();
  });

  const TREE = { d: 'dir 755', 'd/below': 'dir 755', 'd/f': '644 old' };

  it.each([
    ['a new file', file('/d/new', 'x')],
    ['a file that exists', file('/d/f', 'x')],
    ['a new directory', directory('/d/new')],
    ['a file in a new directory', file('/d/new/below/f', 'x')],
    ['a link', link('/d/l')],
  ])('refuses %s in an append-only folder, and leaves nothing there', async (_, entry) => {
    protect('a', 'd');
    const report = await host.bus.roll(config(entry));
    expect(report).toMatchObject({ kind: 'failed', untouched: true });
    expect(report.reason).toContain(
      '/d is append-only (chattr +a), so nothing can be replaced there: run chattr -a /d',
    );
    expect(host.tree()).toEqual(TREE);
  });

  it.each([
    ['a file', file('/d/f', 'x'), '/d/f'],
    ['the mode of a directory', directory('/d/below', '0700'), '/d/below'],
    ['a file in a folder', file('/d/f', 'x'), '/d'],
  ])('refuses to change %s that is immutable', async (_, entry, path) => {
    protect('i', path);
    const report = await host.bus.roll(config(entry));
    expect(report).toMatchObject({ kind: 'failed', untouched: true });
    expect(report.reason).toContain(`${path} is immutable (chattr +i)`);
    expect(host.tree()).toEqual(TREE);
  });

  it('refuses to delete a fragment at a path that became immutable, before it changes anything', async () => {
    expect(await host.bus.roll(config(file('/d/f', 'x'), file('/d/g', 'x')))).toMatchObject({ kind: 'applied' });
    protect('i', 'd/f');
    expect(await host.bus.roll(config())).toMatchObject({
      kind: 'failed',
      untouched: true,
      reason: '/d/f: is immutable (chattr +i), so nothing can be replaced there: run chattr -i /d/f',
    });
    expect(host.tree()).toEqual({ ...TREE, 'd/f': '644 x', 'd/g': '644 x' });
    chattr('-i', host.path('d/f'));
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual(TREE);
  });

  it('changes the mode of a directory in an append-only folder', async () => {
    protect('a', 'd');
    expect(await host.bus.roll(config(directory('/d/below', '0700')))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual(TREE);
  });

  it('accepts what is already right, and what is in a folder that is not protected', async () => {
    protect('a', 'd');
    expect(
      await host.bus.roll(config(file('/d/f', 'old'), directory('/d/below'), file('/d/below/f', 'x'))),
    ).toMatchObject({ kind: 'applied' });
  });

  it('leaves nothing behind if the folder was protected only after the check', async () => {
    protect('a', 'd');
    await expect(putFile(host.root, '/d/f', Buffer.from('x'))).rejects.toThrow('/d is append-only (chattr +a)');
    expect(readdirSync(host.path('d')).sort()).toEqual(['below', 'f']);
  });
});

const whyNoDisk = whyNoSmallDisk('tmpfs');
(whyNoDisk === undefined ? it : it.skip)(
  'a change and a deletion on a read-only file system are refused before anything is changed',
  async () => {
    const disk = await SmallDisk.mount('tmpfs', 4_096);
    const host = new Host();
    try {
      const [, pid = '', folder = ''] = /^\/proc\/(\d+)\/root(.*)$/.exec(disk.path) ?? [];
      const remount = (how: string): void =>
        void execFileSync('nsenter', ['-t', pid, '-m', 'mount', '-o', `remount,${how}`, folder]);
      await host.start({ root: disk.path });
      expect(await host.bus.roll(config(file('/f', 'x')))).toMatchObject({ kind: 'applied' });
      remount('ro');
      const refusal = { kind: 'failed', untouched: true, reason: expect.stringContaining('EROFS') as string };
      expect(await host.bus.roll(config(file('/f', 'x'), file('/g', 'x')))).toMatchObject(refusal);
      expect(await host.bus.roll(config(file('/f', 'y')))).toMatchObject(refusal);
      expect(await host.bus.roll(config())).toMatchObject(refusal);
      remount('rw');
      expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    } finally {
      await host.end();
      await disk.end();
    }
  },
);
