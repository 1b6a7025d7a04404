import { mkdirSync, writeFileSync } from 'node:fs';
import type { ConfigEntry } from '#libs/contracts';
import { config, directory, file, Host } from '../../applier-host.fixture.js';

let host: Host;
beforeEach(async () => {
  host = new Host();
  await host.start();
});
afterEach(() => host.end());

const link = (path: string, target = '/t'): ConfigEntry => ({ kind: 'Link', name: 'l', spec: { path, target } });
const cases: readonly [string, readonly ConfigEntry[], ConfigEntry, string][] = [
  [
    'a file where a folder has managed files',
    [directory('/d'), file('/d/f', 'x')],
    file('/d', 'y'),
    'File/d: /d is a folder until now, with /d/f in it',
  ],
  ['a link above a managed file', [file('/d/f', 'x')], link('/d'), 'Link/l: /d is a folder until now, with /d/f in it'],
  [
    'a file below a file',
    [file('/d', 'x')],
    file('/d/f', 'y'),
    'File/d-f: /d/f needs a folder at /d, which is a File until now',
  ],
  [
    'a directory below a link',
    [link('/d')],
    directory('/d/e'),
    'Directory/d-d-e: /d/e needs a folder at /d, which is a Link until now',
  ],
  [
    'a directory in place of a link',
    [link('/d')],
    directory('/d'),
    'Directory/d-d: /d is a Link until now, and the directory would be created where it leads',
  ],
  [
    'a link in place of a directory',
    [directory('/d')],
    link('/d'),
    'Link/l: /d is a Directory until now, and a rollback could not put it back in place of the link',
  ],
];

it.each(cases)('refuses %s, and accepts it once the old fragment is deleted', async (_, before, after, reason) => {
  expect(await host.bus.roll(config(...before))).toMatchObject({ kind: 'applied' });
  const tree = host.tree();
  const report = await host.bus.roll(config(after));
  expect(report).toMatchObject({ kind: 'failed', untouched: true });
  expect(report.reason).toMatch(
    /^.*\. What is at a path cannot change its kind in one change: delete \w+\/\S+ first, and /,
  );
  expect(report.reason).toContain(reason);
  expect(host.tree()).toEqual(tree);
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
  expect(host.tree()).toEqual({});
  expect(await host.bus.roll(config(after))).toMatchObject({ kind: 'applied' });
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
  expect(host.tree()).toEqual({});
});

it('refuses a file in place of a directory that has files of others, before it changes anything', async () => {
  mkdirSync(host.path('d'));
  writeFileSync(host.path('d/other'), 'x');
  await host.bus.roll(config(directory('/d')));
  const tree = host.tree();
  expect(await host.bus.roll(config(file('/d', 'y'), file('/a', 'z')))).toMatchObject({
    kind: 'failed',
    untouched: true,
    reason: 'File/d: a directory that is not empty is in the way',
  });
  expect(host.tree()).toEqual(tree);
});

it.each([
  ['a directory in place of a file', file('/d', 'x'), directory('/d')],
  ['a file in place of an empty directory', directory('/d'), file('/d', 'x')],
  ['a link in place of a file', file('/d', 'x'), link('/d')],
  ['a file in place of a link', link('/d'), file('/d', 'x')],
])('accepts %s', async (_, before, after) => {
  await host.bus.roll(config(before));
  expect(await host.bus.roll(config(after))).toMatchObject({ kind: 'applied' });
  expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
  expect(host.tree()).toEqual({});
});
