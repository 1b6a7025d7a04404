import { createHash } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DigestCache } from './digest-cache.js';
import { OpenFile, withOpen } from './open-file.js';

const LARGE_BYTES = (1 << 20) + 1;
const large = (letter: string): Buffer => Buffer.alloc(LARGE_BYTES, letter);
const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** So late that the file counts as settled. */
const later = (): number => Date.now() + 60_000;

let folder: string;
let path: string;
let reads: jest.SpyInstance;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-digests-'));
  path = join(folder, 'x');
  reads = jest.spyOn(OpenFile.prototype, 'pieces');
});
afterEach(() => {
  reads.mockRestore();
  rmSync(folder, { recursive: true });
});

const digestIn = (cache: DigestCache): Promise<string> => withOpen(path, 'r', (file) => cache.digestOf(file));

/** Writes it in a later tick of the clock of the file system. */
function edit(content: Buffer, mtimeS?: number): void {
  const { ctimeNs } = statSync(path, { bigint: true });
  do {
    writeFileSync(path, content);
    if (mtimeS !== undefined) utimesSync(path, mtimeS, mtimeS);
  } while (statSync(path, { bigint: true }).ctimeNs === ctimeNs);
}

it('reads a large file once while nobody changes it', async () => {
  const cache = new DigestCache(later);
  writeFileSync(path, large('a'));
  expect([await digestIn(cache), await digestIn(cache)]).toEqual([sha256(large('a')), sha256(large('a'))]);
  expect(reads).toHaveBeenCalledTimes(1);
});

it('finds an edit that keeps the size and puts the time of the last write back', async () => {
  const cache = new DigestCache(later);
  writeFileSync(path, large('a'));
  utimesSync(path, 1_000_000_000, 1_000_000_000);
  await digestIn(cache);
  const before = statSync(path, { bigint: true });
  edit(large('b'), 1_000_000_000);
  const { ino, size, mtimeNs } = statSync(path, { bigint: true });
  expect([ino, size, mtimeNs]).toEqual([before.ino, before.size, before.mtimeNs]);
  expect(await digestIn(cache)).toBe(sha256(large('b')));
});

it('finds a file that took the place of another', async () => {
  const cache = new DigestCache(later);
  writeFileSync(path, large('a'));
  await digestIn(cache);
  const other = join(folder, 'other');
  writeFileSync(other, large('b'));
  renameSync(other, path);
  expect(await digestIn(cache)).toBe(sha256(large('b')));
});

it.each(['mtime', 'ctime'] as const)('reads a file again whose %s is as new as the last reading', async (time) => {
  writeFileSync(path, large('a'));
  const { ctimeMs } = statSync(path);
  const mtimeMs = ctimeMs + (time === 'mtime' ? 600_000 : -600_000);
  utimesSync(path, mtimeMs / 1_000, mtimeMs / 1_000);
  const newestMs = Math.max(mtimeMs, statSync(path).ctimeMs);
  let nowMs = newestMs;
  const cache = new DigestCache(() => nowMs);
  await digestIn(cache);
  nowMs = newestMs + 1_999;
  await digestIn(cache);
  nowMs = newestMs + 2_002;
  await digestIn(cache);
  expect(reads).toHaveBeenCalledTimes(3);
  await digestIn(cache);
  expect(reads).toHaveBeenCalledTimes(3);
});

it('does not keep what it read of a file that was changed in the meantime', async () => {
  const cache = new DigestCache(later);
  writeFileSync(path, large('a'));
  const reading = digestIn(cache);
  edit(large('b'));
  await reading;
  await digestIn(cache);
  expect(reads).toHaveBeenCalledTimes(2);
});

it('reads a short file each time', async () => {
  const cache = new DigestCache(later);
  const read = jest.spyOn(OpenFile.prototype, 'read');
  writeFileSync(path, 'short');
  await digestIn(cache);
  await digestIn(cache);
  expect(read).toHaveBeenCalledTimes(2);
  read.mockRestore();
});

it('forgets the oldest of more than 1,000 files', async () => {
  const cache = new DigestCache(later);
  const size = jest.spyOn(OpenFile.prototype, 'size', 'get').mockReturnValue(LARGE_BYTES);
  const read = async (name: number): Promise<void> => {
    path = join(folder, String(name));
    await digestIn(cache);
  };
  for (let i = 0; i < 1_001; i += 1) {
    writeFileSync(join(folder, String(i)), String(i));
    await read(i);
  }
  await read(1);
  expect(reads).toHaveBeenCalledTimes(1_001);
  await read(0);
  expect(reads).toHaveBeenCalledTimes(1_002);
  size.mockRestore();
});
