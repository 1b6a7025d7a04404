import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPaths } from './found-paths.js';

let root: string;
const path = process.env['PATH'];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-found-'));
  mkdirSync(join(root, 'etc'));
  writeFileSync(join(root, 'etc/motd'), 'hello', { mode: 0o640 });
  symlinkSync('motd', join(root, 'etc/link'));
});
afterEach(() => {
  process.env['PATH'] = path;
  rmSync(root, { recursive: true, force: true });
});

it('says what exists at each path', async () => {
  const owner = `${process.geteuid?.()}:${process.getegid?.()}`;
  expect(await findPaths(root, ['/etc/motd', '/etc', '/etc/link', '/etc/none', '/etc/motd/x'])).toEqual([
    { path: '/etc/motd', state: 'file', what: `a file of 5 bytes (mode 0640, owner ${owner})` },
    { path: '/etc', state: 'directory', what: 'a directory' },
    { path: '/etc/link', state: 'symlink', what: 'a symbolic link to motd' },
    { path: '/etc/motd/x', state: 'unreachable', what: '/etc/motd is not a directory' },
  ]);
});

it('reads nothing where a file system does not answer', async () => {
  // A program that never ends stands in for a call that does not return.
  const bin = join(root, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'stat'), '#!/bin/sh\nexec /bin/sleep 60\n');
  chmodSync(join(bin, 'stat'), 0o755);
  process.env['PATH'] = `${bin}:${path}`;
  const what = 'it was not read: its file system, or that of another path of the change, does not answer';
  expect(await findPaths(root, ['/etc/motd', '/etc/none'])).toEqual([
    { path: '/etc/motd', state: 'unreachable', what },
    { path: '/etc/none', state: 'unreachable', what },
  ]);
});

it('reads paths itself if the program does not exist', async () => {
  process.env['PATH'] = join(root, 'nowhere');
  expect(await findPaths(root, ['/etc'])).toEqual([{ path: '/etc', state: 'directory', what: 'a directory' }]);
});
