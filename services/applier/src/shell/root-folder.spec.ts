import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { config, file, Host } from './applier-host.fixture.js';
import { RefusedError, refusalOf } from './ports.js';

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.end());

describe('the root folder of a node', () => {
  it('must exist: a misspelt one is not created', async () => {
    const root = join(host.folder, 'rooot');
    await expect(host.start({ root })).rejects.toThrow(
      `the root ${root} cannot be used: it does not exist: check --root (or SLUICE_ROOT), or create the folder first`,
    );
    expect(existsSync(root)).toBe(false);
  });

  it('must be a folder', async () => {
    const root = join(host.folder, 'file');
    writeFileSync(root, '');
    await expect(host.start({ root })).rejects.toThrow(`the root ${root} cannot be used: it is not a folder: check`);
  });

  it('that somebody removes later is named with a way out, and not created again', async () => {
    await host.start();
    rmSync(host.root, { recursive: true });
    const report = await host.bus.roll(config(file('/motd', 'hello')));
    expect(report).toMatchObject({ kind: 'failed', untouched: true });
    expect(report.reason).toMatch(
      /the root folder of this node, \S+, does not exist any more: create it again, .*--root$/,
    );
    expect(existsSync(host.root)).toBe(false);
  });
});

test.each([
  ['/etc/f', '/etc/f is a mount point', '/etc/f: is a mount point'],
  ['File/f (/etc/f)', '/etc/f is a mount point', 'File/f (/etc/f): is a mount point'],
  ['File/f', '/etc/f is a mount point', 'File/f: /etc/f is a mount point'],
  ['/etc/f', '/etc/fstab is a mount point', '/etc/f: /etc/fstab is a mount point'],
  ['', '/etc/f is a mount point', '/etc/f is a mount point'],
])('a reason names the path of %j once', (where, message, reason) => {
  expect(refusalOf(new RefusedError('node', message), where)).toEqual({ fault: 'node', reason });
});
