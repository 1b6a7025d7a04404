import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SmallDisk, whyNoSmallDisk } from '../../../testing/small-disk.js';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import type { RunningApplier } from '../../index.js';

/** A sparse file of this size takes no space. Reading it takes more than an hour. */
const HUGE_BYTES = 2 ** 43;

const TOO_SLOW = new RegExp(`\\(/srv/f\\): has ${HUGE_BYTES} bytes, and the change had not enough time to save them`);

let host: Host;
let applier: RunningApplier;
beforeEach(async () => {
  host = new Host();
  mkdirSync(host.path('srv'));
  applier = await host.start();
});
afterEach(() => host.end());

function createHuge(path: string): void {
  writeFileSync(host.path(path), '');
  truncateSync(host.path(path), HUGE_BYTES);
}

const whyNoDisk = whyNoSmallDisk('tmpfs');
(whyNoDisk === undefined ? it : it.skip)(
  'a huge file that fits on the disk, but cannot be saved in time, ends the lease with its name and size',
  async () => {
    const disk = await SmallDisk.mount('tmpfs', (2 * HUGE_BYTES) / 1_024);
    const roomy = new Host(disk.path);
    try {
      await roomy.start();
      writeFileSync(roomy.path('f'), '');
      truncateSync(roomy.path('f'), HUGE_BYTES);
      const report = await roomy.bus.roll(config(file('/f', 'managed'), file('/other', 'x')), { applyMs: 3_000 });
      expect(report).toMatchObject({ kind: 'failed', restored: true });
      expect(report.reason).toBe(
        `File/f (/f): has ${HUGE_BYTES} bytes, and the change had not enough time to save them: move the file away, or use a longer applyTimeout`,
      );
      expect(readdirSync(roomy.root)).toEqual(['f']);
      expect(readdirSync(join(roomy.state, 'originals'))).toEqual([]);
      expect(await roomy.bus.roll(config(file('/other', 'x')))).toMatchObject({ kind: 'applied' });
    } finally {
      await roomy.end();
      await disk.end();
    }
  },
);

describe('a huge sparse file', () => {
  it('at a managed path does not stop a change of another path, nor its rollback', async () => {
    const managed = file('/srv/f', 'managed');
    expect(await host.bus.roll(config(managed))).toMatchObject({ kind: 'applied' });
    createHuge('srv/f');
    const failing = probe('never', { file: { path: '/srv/f', matches: 'NEVER' } });
    const report = await host.bus.roll(config(managed, file('/other', 'x'), failing));
    expect({ restored: report.restored, tree: host.tree() }).toEqual({
      restored: true,
      tree: { srv: 'dir 755', 'srv/f': '644 managed' },
    });
    createHuge('srv/f');
    expect(await host.bus.roll(config(managed, file('/other', 'x')))).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ other: '644 x', srv: 'dir 755', 'srv/f': '644 managed' });
  });

  it('that cannot be saved in the time of the change is refused, with its name and size', async () => {
    createHuge('srv/f');
    const report = await host.bus.roll(config(file('/srv/f', 'managed')));
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toMatch(TOO_SLOW);
  });

  it('in place of a managed file does not stop its deletion', async () => {
    writeFileSync(host.path('srv/f'), 'mine');
    expect(await host.bus.roll(config(file('/srv/f', 'managed')))).toMatchObject({ kind: 'applied' });
    createHuge('srv/f');
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(readFileSync(host.path('srv/f'), 'utf8')).toBe('mine');
  });
});

describe('a huge sparse file in place of one from the object store', () => {
  const content = Buffer.from('from the object store');
  const sha256 = createHash('sha256').update(content).digest('hex');
  const managed = { kind: 'File', name: 'f', spec: { path: '/srv/f', contentFrom: { object: 'a.bin', sha256 } } };
  beforeEach(() => host.bus.objects.set(sha256, content));

  const replace = async (): Promise<void> => {
    expect(await host.bus.roll(config(managed))).toMatchObject({ kind: 'applied' });
    createHuge('srv/f');
  };

  it('does not stop a change of another path, nor its rollback', async () => {
    await replace();
    const failing = probe('never', { file: { path: '/other', matches: 'NEVER' } });
    const report = await host.bus.roll(config(managed, file('/other', 'x'), failing));
    const tree = { srv: 'dir 755', 'srv/f': '644 from the object store' };
    expect({ restored: report.restored, tree: host.tree() }).toEqual({ restored: true, tree });
    createHuge('srv/f');
    expect(await host.bus.roll(config(managed, file('/other', 'x')))).toMatchObject({ kind: 'applied' });
    expect(host.tree()).toEqual({ other: '644 x', ...tree });
  });

  it('is reported as drift, also after a restart without the object', async () => {
    await replace();
    await applier.stop();
    host.bus.objects.clear();
    await host.start({ driftCheckMs: 60 });
    const { differences } = await host.bus.reported((report) => report.differences.length > 0);
    expect(differences).toEqual(['/srv/f: content differs']);
  });

  it('is named if the change replaces it and it cannot be saved in time', async () => {
    await replace();
    const report = await host.bus.roll(config(file('/srv/f', 'x')));
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toMatch(TOO_SLOW);
  });

  it('is named if it was there before the fragment and cannot be saved in time', async () => {
    createHuge('srv/f');
    const report = await host.bus.roll(config(managed));
    expect(report).toMatchObject({ kind: 'failed', restored: true });
    expect(report.reason).toMatch(TOO_SLOW);
  });
});
