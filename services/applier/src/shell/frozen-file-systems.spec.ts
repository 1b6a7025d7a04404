import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { SmallDisk, whyNoDeadMount, whyNoSmallDisk } from '../testing/small-disk.js';
import { config, file, Host, probe } from './applier-host.fixture.js';
import type { RunningApplier } from './index.js';

const KEYS = { kind: 'SshKeys', name: 'k', spec: { user: 'alice', keys: ['ssh-ed25519 AAAA alice'] } };
const FROZEN = 'the file system at /mnt/remote does not answer';
const whyNot = whyNoSmallDisk('tmpfs') ?? whyNoDeadMount();

(whyNot === undefined ? describe : describe.skip)('a file system that does not answer', () => {
  let disk: SmallDisk;
  let host: Host;
  let applier: RunningApplier;
  let unmount: (() => void) | undefined;
  /** While the applier does not run: it would hang if it used the folder just then. */
  const freeze = async (folder: string): Promise<void> => {
    await applier.stop();
    unmount = disk.stopAnswering(`root/${folder}`);
    await host.start({ driftCheckMs: 100 });
  };
  const answerAgain = (): void => {
    unmount?.();
    unmount = undefined;
  };
  const contentOf = (path: string): string => readFileSync(host.path(path), 'utf8');

  beforeEach(async () => {
    disk = await SmallDisk.mount('tmpfs', 8_192);
    host = new Host(disk.path);
    mkdirSync(host.path('etc'));
    mkdirSync(host.path('home/alice'), { recursive: true });
    const uid = process.getuid?.() ?? 0;
    writeFileSync(host.path('etc/passwd'), `root:x:0:0::/etc:/bin/sh\nalice:x:${uid}:0::/home/alice:/bin/sh\n`);
    applier = await host.start();
  });
  afterEach(async () => {
    answerAgain();
    await host.end();
    await disk.end();
  });

  it('is named as drift, and keeps no other path from being checked', async () => {
    const wanted = config(file('/mnt/remote/a', 'a'), file('/b', 'b'));
    expect(await host.bus.roll(wanted)).toMatchObject({ kind: 'applied' });
    writeFileSync(host.path('b'), 'edited');
    await freeze('mnt/remote');
    const { differences } = await host.bus.reported((report) => report.differences.length === 2);
    expect(differences).toEqual(['/b: content differs', `/mnt/remote/a: cannot be read: ${FROZEN}`]);
    answerAgain();
    await host.bus.reported(({ differences: [only, ...more] }) => only === '/b: content differs' && more.length === 0);
  });

  it('fails no change that does not touch it, and is named', async () => {
    expect(await host.bus.roll(config(file('/mnt/remote/a', 'a'), file('/b', 'b')))).toMatchObject({ kind: 'applied' });
    await freeze('mnt/remote');
    const wanted = config(file('/mnt/remote/a', 'a'), file('/b', 'new'), file('/c', 'c'));
    expect(await host.bus.roll(wanted)).toMatchObject({
      kind: 'applied',
      changed: ['/b', '/c'],
      reason: `left as it is: File/mnt-remote-a: ${FROZEN}`,
    });
    expect([contentOf('b'), contentOf('c')]).toEqual(['new', 'c']);
    const failing = config(...wanted.fragments.slice(0, 2), probe('never', { file: { path: '/b', matches: 'never' } }));
    expect(await host.bus.roll(failing)).toMatchObject({ kind: 'failed', restored: true, probe: 'never' });
    expect([contentOf('b'), contentOf('c')]).toEqual(['new', 'c']);
    answerAgain();
    expect(contentOf('mnt/remote/a')).toBe('a');
  });

  it('is named in the reason why a change of it fails, and the change works once it answers', async () => {
    const old = [file('/mnt/remote/a', 'a'), file('/b', 'b')];
    expect(await host.bus.roll(config(...old))).toMatchObject({ kind: 'applied' });
    await freeze('mnt/remote');
    const wanted = config(file('/mnt/remote/a', 'new'), file('/b', 'new'));
    expect(await host.bus.roll(wanted)).toMatchObject({
      kind: 'failed',
      restored: true,
      reason: `File/mnt-remote-a: ${FROZEN}`,
    });
    expect(contentOf('b')).toBe('b');
    expect(await host.bus.roll(config(file('/b', 'new')))).toMatchObject({
      kind: 'failed',
      restored: true,
      reason: `/mnt/remote/a: ${FROZEN}`,
    });
    answerAgain();
    // Its last result counts for some seconds.
    const wait = { applyMs: 60_000 };
    let report = await host.bus.roll(wanted, wait);
    while (report.kind === 'failed') report = await host.bus.roll(wanted, wait);
    expect([report.kind, contentOf('b'), contentOf('mnt/remote/a')]).toEqual(['applied', 'new', 'new']);
  });

  it('is named if SSH keys are on it', async () => {
    expect(await host.bus.roll(config(KEYS))).toMatchObject({ kind: 'applied' });
    await freeze('home');
    const { differences } = await host.bus.reported((report) => report.differences.length > 0);
    expect(differences).toEqual(['SshKeys/k: cannot be read: the file system at /home/alice/.ssh does not answer']);
  });

  it('makes a probe of a file on it fail, which hangs nothing', async () => {
    const reads = probe('reads', { file: { path: '/mnt/remote/a', matches: 'a' }, interval: '1s' });
    expect(await host.bus.roll(config(file('/mnt/remote/a', 'a'), reads))).toMatchObject({ kind: 'applied' });
    await freeze('mnt/remote');
    const { failingProbes } = await host.bus.reported((report) => report.failingProbes.length > 0);
    expect(failingProbes).toEqual([{ probe: 'reads', reason: `/mnt/remote/a was not read: ${FROZEN}` }]);
  });
});
