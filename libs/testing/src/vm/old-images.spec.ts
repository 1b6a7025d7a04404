import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { markUsed, removeOldImages } from './old-images.js';

const DAY_MS = 24 * 3_600_000;

describe('cached images of VMs', () => {
  const cache = mkdtempSync(join(tmpdir(), 'sluice-images-'));
  // A whole second: other times may be rounded to a thousandth of a millisecond less.
  const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
  function image(name: string, days: number): string {
    const path = join(cache, name);
    mkdirSync(path);
    writeFileSync(join(path, 'disk.img'), 'disk');
    utimesSync(path, new Date(nowMs - days * DAY_MS), new Date(nowMs - days * DAY_MS));
    return path;
  }
  afterAll(() => rmSync(cache, { recursive: true }));

  test('are removed after days without use, and the current one and all other files are kept', async () => {
    const current = image('vm-000000000000', 100);
    for (const [name, days] of [
      ['vm-111111111111', 4],
      ['vm-222222222222', 2],
      ['vm-333333333333.old-1', 4],
      ['vm-tools-bookworm', 100],
      ['kube', 100],
      ['nats-0.3.0', 100],
    ] as const)
      image(name, days);
    expect((await removeOldImages(current, nowMs)).toSorted()).toEqual(['vm-111111111111', 'vm-333333333333.old-1']);
    expect(readdirSync(cache).toSorted()).toEqual([
      'kube',
      'nats-0.3.0',
      'vm-000000000000',
      'vm-222222222222',
      'vm-tools-bookworm',
    ]);
    expect(existsSync(join(current, 'disk.img'))).toBe(true);
  });

  test('are kept while they are used; marking a missing image returns false', async () => {
    const used = image('vm-444444444444', 10);
    expect(await markUsed(used, new Date(nowMs))).toBe(true);
    expect(statSync(used).mtimeMs).toBe(nowMs);
    expect(await removeOldImages(join(cache, 'vm-000000000000'), nowMs)).toEqual([]);
    expect(await markUsed(join(cache, 'vm-555555555555'))).toBe(false);
  });
});
