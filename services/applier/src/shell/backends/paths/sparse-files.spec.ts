import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SmallDisk, whyNoSmallDisk } from '../../../testing/small-disk.js';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { withOpen } from '../../open-file.js';
import { OriginalStore } from '../../state/original-store.js';
import { putFile, restoreFile } from './path-changes.js';
import { type Attributes, fileAt } from './path-state.js';

const MIB = 2 ** 20;

let root: string;
let store: OriginalStore;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sparse-'));
  store = new OriginalStore(join(root, 'originals'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** A file with these texts at these positions. */
function make(size: number, texts: Readonly<Record<number, string>>): void {
  const fd = openSync(join(root, 'file'), 'w');
  for (const [at, text] of Object.entries(texts)) writeSync(fd, text, Number(at));
  ftruncateSync(fd, size);
  closeSync(fd);
}

/** What it takes on the disk, in bytes. */
const usedBytes = (path: string): number => statSync(path).blocks * 512;

/** Saves the file, replaces it, and restores it. Returns what it had before. */
async function saveAndRestore(): Promise<{ readonly content: Buffer; readonly digest: string }> {
  const content = readFileSync(join(root, 'file'));
  const { now, extra } = await fileAt(root, '/file', { full: true });
  if (now.state !== 'file') throw new Error(`there is no file, but ${now.state}`);
  const digest = await withOpen(join(root, 'file'), 'r', (file) => store.keep(file, () => Infinity));
  await putFile(root, '/file', Buffer.from('new'));
  const was: Attributes = { mode: now.mode, uid: now.uid, gid: now.gid, ...extra };
  await restoreFile(root, '/file', store.content(digest), was, {});
  return { content, digest };
}

describe('a file with holes', () => {
  it.each<{ name: string; size: number; texts: Record<number, string> }>([
    { name: 'large', size: 50 * MIB, texts: { 0: 'begin', [20 * MIB + 5_000]: 'middle', [50 * MIB - 3]: 'end' } },
    { name: 'large, with a hole at its end', size: 9 * MIB + 1, texts: { 100: 'begin' } },
    { name: 'large, with nothing else', size: 8 * MIB, texts: {} },
    { name: 'small', size: MIB / 2, texts: { 300_000: 'middle' } },
  ])('has them again after it was restored: $name', async ({ size, texts }) => {
    make(size, texts);
    expect(usedBytes(join(root, 'file'))).toBeLessThan(64 * 1_024);

    const { content } = await saveAndRestore();

    expect(statSync(join(root, 'file')).size).toBe(size);
    expect(readFileSync(join(root, 'file')).equals(content)).toBe(true);
    expect(usedBytes(join(root, 'file'))).toBeLessThan(64 * 1_024);
  });

  it('takes no more space where it is saved', async () => {
    make(50 * MIB, { [20 * MIB]: 'middle' });

    const { digest } = await saveAndRestore();

    expect(statSync(store.pathOf(digest)).size).toBe(50 * MIB);
    expect(usedBytes(store.pathOf(digest))).toBeLessThan(64 * 1_024);
  });
});

describe('a file of zeros without holes, such as a swap file', () => {
  const SIZE = 3 * MIB;
  const fill = (): void => make(SIZE, { 0: '\0'.repeat(SIZE) });

  it('gets none when it is restored', async () => {
    fill();
    expect(usedBytes(join(root, 'file'))).toBeGreaterThanOrEqual(SIZE);

    await saveAndRestore();

    expect(usedBytes(join(root, 'file'))).toBeGreaterThanOrEqual(SIZE);
    expect(readFileSync(join(root, 'file')).equals(Buffer.alloc(SIZE))).toBe(true);
  });

  it('gets none if the same content was saved from a file with holes before', async () => {
    make(SIZE, {});
    const sparse = await saveAndRestore();
    fill();

    const dense = await saveAndRestore();

    expect(dense.digest).toBe(sparse.digest);
    expect(usedBytes(join(root, 'file'))).toBeGreaterThanOrEqual(SIZE);
  });
});

it('keeps its holes through a failed lease, and through the deletion of its fragment', async () => {
  const host = new Host();
  try {
    await host.start();
    const path = host.path('disk.img');
    const fd = openSync(path, 'w');
    writeSync(fd, 'middle', 20 * MIB);
    ftruncateSync(fd, 50 * MIB);
    closeSync(fd);
    const before = readFileSync(path);
    const isAsBefore = (): void => {
      expect(readFileSync(path).equals(before)).toBe(true);
      expect(usedBytes(path)).toBeLessThan(64 * 1_024);
    };
    const managed = file('/disk.img', 'managed');

    const failing = probe('never', { file: { path: '/disk.img', matches: 'NEVER' } });
    expect(await host.bus.roll(config(managed, failing))).toMatchObject({ kind: 'failed', restored: true });
    isAsBefore();

    expect(await host.bus.roll(config(managed))).toMatchObject({ kind: 'applied' });
    expect(readFileSync(path, 'utf8')).toBe('managed');
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    isAsBefore();
  } finally {
    await host.end();
  }
});

const whyNoDisk = whyNoSmallDisk('tmpfs');
(whyNoDisk === undefined ? it : it.skip)('must fit on the disk of the state folder without its holes', async () => {
  const disk = await SmallDisk.mount('tmpfs', 8 * 1_024);
  const host = new Host(disk.path);
  try {
    await host.start();
    const path = host.path('disk.img');
    const fd = openSync(path, 'w');
    writeSync(fd, 'middle', 20 * MIB);
    ftruncateSync(fd, 50 * MIB);
    const before = readFileSync(path);
    const managed = file('/disk.img', 'managed');
    expect(await host.bus.roll(config(managed))).toMatchObject({ kind: 'applied' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(readFileSync(path).equals(before)).toBe(true);

    writeFileSync(path, Buffer.alloc(5 * MIB));
    const report = await host.bus.roll(config(managed));
    expect(report.reason).toMatch(
      /\(\/disk\.img\): has 5242880 bytes, which must be saved in .*\/originals, but only \d+ are free/,
    );
    closeSync(fd);
  } finally {
    await host.end();
    await disk.end();
  }
});
