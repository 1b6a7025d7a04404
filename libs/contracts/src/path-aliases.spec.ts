import { aliasesOf, aliasWords, throughAliases } from './path-aliases.js';

const ALIASES = new Map([
  ['/bin', '/usr/bin'],
  ['/srv/data', '/data'],
  ['/data/tmp', '/var/tmp'],
]);

it('reads back the aliases that a node announces', () => {
  expect(aliasWords(ALIASES)[0]).toBe('path:/bin=/usr/bin');
  expect(aliasesOf(['kind:File', ...aliasWords(ALIASES)])).toEqual(ALIASES);
});

it.each([
  ['/bin/sh', '/usr/bin/sh'],
  ['/binary', '/binary'],
  ['/bin', '/bin'],
  ['/data/tmp/x', '/var/tmp/x'],
  ['/srv/data/tmp/x', '/var/tmp/x'],
  ['relative', 'relative'],
])('the path %s leads to %s', (path, real) => {
  expect(throughAliases(path, ALIASES)).toBe(real);
});

it('follows a link at the end of a path if requested', () => {
  expect(throughAliases('/bin', ALIASES, true)).toBe('/usr/bin');
  expect(throughAliases('/srv/data/tmp', ALIASES, true)).toBe('/var/tmp');
});

it('terminates if a node announces a link into itself', () => {
  expect(throughAliases('/a/x', new Map([['/a', '/a/b']]))).toBe('/a/b/x');
});
