import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SmallDisk, whyNoSmallDisk } from '../../testing/small-disk.js';
import { StateFolder } from './state-folder.js';

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'sluice-private-')), 'state');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true, force: true }));

const modeOf = (file: string): string => (statSync(file).mode & 0o7777).toString(8);
const use = async (): Promise<void> => (await StateFolder.open(path)).close();
const asRoot = process.geteuid?.() === 0 ? it : it.skip;

it('makes a state folder that only its user can read', async () => {
  await use();
  expect([modeOf(path), modeOf(join(path, 'configs'))]).toEqual(['700', '700']);
});

it.each([0o777, 0o1777, 0o770])('closes its own folder with mode %i to other users', async (mode) => {
  mkdirSync(path);
  chmodSync(path, mode);
  await use();
  expect(modeOf(path)).toBe('700');
  chmodSync(path, mode);
  await use();
  expect(modeOf(path)).toBe('700');
});

it('refuses a folder for other things that other users may write to, and leaves it as it is', async () => {
  mkdirSync(path);
  writeFileSync(join(path, 'other'), '');
  chmodSync(path, 0o1777);
  await expect(use()).rejects.toThrow(
    `${path}: other users may write to this folder, and could make a rollback write anything: give the applier its own folder with --state`,
  );
  expect(modeOf(path)).toBe('1777');
  chmodSync(path, 0o755);
  await use();
  expect(modeOf(path)).toBe('755');
});

asRoot('refuses a folder, and a file in it, that belongs to another user', async () => {
  await use();
  const journal = join(path, 'journal.json');
  writeFileSync(journal, '');
  for (const file of [journal, path]) {
    chownSync(file, 1_234, 1_234);
    await expect(use()).rejects.toThrow(
      `${file}: this belongs to the user 1234, and the applier runs as 0: that user could make a rollback write anything. Check what is in the state folder, then run chown -R 0 on it`,
    );
    chownSync(file, 0, 0);
  }
});

asRoot('lets a guard finish a rollback in a folder whose owner has changed', async () => {
  await use();
  chownSync(path, 1_234, 1_234);
  await (await StateFolder.open(path, true)).close();
});

it('says what to do if there is no folder, and none can be made', async () => {
  writeFileSync(path, '');
  await expect(use()).rejects.toThrow(
    `${path}: this is not a folder: move it away, or name another folder with --state`,
  );
  const below = join(path, 'below');
  await expect(StateFolder.open(below)).rejects.toThrow(
    `${below}: something on the way to this folder is not a folder: name another folder with --state`,
  );
});

const whyNoDisk = whyNoSmallDisk('tmpfs');
(whyNoDisk === undefined ? it : it.skip)('says that the disk is full', async () => {
  const disk = await SmallDisk.mount('tmpfs', 64);
  try {
    writeFileSync(join(disk.path, 'other'), Buffer.alloc(64 * 1_024));
    const folder = join(disk.path, 'state');
    await expect(StateFolder.open(folder)).rejects.toThrow(
      `${folder}: the disk is full: free some space on it (ENOSPC: no space left on device`,
    );
  } finally {
    await disk.end();
  }
});

(whyNoDisk === undefined ? it : it.skip)(
  'says that the file system is read-only, not that a folder is missing',
  async () => {
    const disk = await SmallDisk.mount('tmpfs', 64);
    try {
      disk.makeReadOnly();
      for (const folder of ['state', 'of/node'])
        await expect(StateFolder.open(join(disk.path, folder))).rejects.toThrow(
          `${join(disk.path, folder)}: the file system is read-only: make it writable, or name another folder with --state`,
        );
    } finally {
      await disk.end();
    }
  },
);
