import { loadableVersions, migrated } from './migration.js';

const add = (text: string) => (dumped: unknown) => `${dumped as string}${text}`;

describe('a dump of an older version', () => {
  const core = { version: 4, migrations: { 1: add('b'), 2: add('c'), 3: add('d') } };

  it('is brought up to date step by step', () => {
    expect([migrated(core, 4, 'a'), migrated(core, 3, 'a'), migrated(core, 1, 'a')]).toEqual(['a', 'ad', 'abcd']);
  });

  it('can be loaded as far back as the steps reach without a gap', () => {
    expect(loadableVersions(core)).toEqual([4, 3, 2, 1]);
    expect(loadableVersions({ version: 4, migrations: { 1: add('b'), 3: add('d') } })).toEqual([4, 3]);
    expect(loadableVersions({ version: 4 })).toEqual([4]);
  });

  it('that no step leads on from, and one of a newer version, is an error', () => {
    expect(() => migrated({ version: 4, migrations: { 1: add('b') } }, 1, 'a')).toThrow(
      'no way from a dump of version 1 to version 4',
    );
    expect(() => migrated(core, 5, 'a')).toThrow('no way from a dump of version 5');
  });
});
