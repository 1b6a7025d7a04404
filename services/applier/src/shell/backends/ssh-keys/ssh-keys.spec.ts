import {
  appendFileSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import fc from 'fast-check';
import type { ConfigEntry } from '#libs/contracts';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';
import { userOf } from './ssh-user.js';
import { blocksOf, withBlock, withoutBlocks } from '../marked-block.js';

const key = (comment: string): string =>
  `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5lXwPqNQZLQ6Q0Hn0g2l0X0mBz0mJ7S3b8gq5D3vYk ${comment}`;
const keys = (name: string, ...comments: string[]): ConfigEntry => ({
  kind: 'SshKeys',
  name,
  spec: { user: 'core', keys: comments.map(key) },
});
const FILE = 'home/core/.ssh/authorized_keys';
const gate = probe('gate', { file: { path: '/etc/gate', matches: '^open' } });

const isRoot = process.getuid?.() === 0;
const itAsRoot = isRoot ? it : it.skip;

let host: Host;
beforeEach(async () => {
  host = new Host();
  mkdirSync(host.path('etc'));
  writeFileSync(
    host.path('etc/passwd'),
    `root:x:0:0:root:/root:/bin/sh\ncore:x:${isRoot ? 4242 : process.getuid?.()}:${process.getgid?.()}::/home/core:/bin/sh\nlost:x:1:1::/nowhere:/bin/sh\n`,
    { mode: 0o644 },
  );
  mkdirSync(host.path('home/core'), { recursive: true });
  await host.start({ driftCheckMs: 40 });
});
afterEach(() => host.end());

const text = (): string => readFileSync(host.path(FILE), 'latin1');
const roll = (...entries: ConfigEntry[]) => host.bus.roll(config(...entries));

it('adds lines that belong to the user alone, and removes the folder that it created', async () => {
  const before = host.tree();
  expect(await roll(keys('team', 'a', 'ü'), keys('ops', 'b'))).toMatchObject({
    verdict: 'applied',
    changed: ['SshKeys/ops', 'SshKeys/team'],
  });
  expect(host.tree()).toMatchObject({ 'home/core/.ssh': 'dir 700' });
  expect(
    Buffer.from(text(), 'latin1')
      .toString('utf8')
      .split('\n')
      .filter((line) => line.startsWith('ssh-'))
      .sort(),
  ).toEqual([key('a'), key('b'), key('ü')]);
  const { mode, uid } = lstatSync(host.path(FILE));
  expect([mode & 0o777, uid]).toEqual([0o600, isRoot ? 4242 : process.getuid?.()]);
  expect(await roll(keys('ops', 'c'))).toMatchObject({ verdict: 'applied' });
  expect(text()).toBe(`# BEGIN Sluice SshKeys/ops\n${key('c')}\n# END Sluice SshKeys/ops\n`);
  expect(await roll()).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
  expect(host.tree()).toEqual(before);
});

it.each([
  ['with lines of others', 'ssh-rsa AAAA theirs\n# a comment\n'],
  ['without a newline at its end', 'ssh-rsa AAAA theirs'],
  ['that is empty', ''],
  ['that is not UTF-8', 'ssh-rsa AAAA m\xfcller\n'],
])('restores a file %s byte for byte, and keeps what others added since', async (_name, theirs) => {
  mkdirSync(host.path('home/core/.ssh'), { mode: 0o755 });
  writeFileSync(host.path(FILE), theirs, { encoding: 'latin1', mode: 0o644 });
  const before = host.tree();
  await roll(keys('team', 'a'));
  expect(text().endsWith(theirs)).toBe(true);
  await roll();
  expect([text(), host.tree()]).toEqual([theirs, before]);
  await roll(keys('team', 'a'));
  appendFileSync(host.path(FILE), '\nssh-rsa AAAA another\n');
  await roll();
  expect(text()).toBe(`${theirs}\nssh-rsa AAAA another\n`);
});

it('restores the previous keys after a bad change', async () => {
  await roll(keys('team', 'a'), file('/etc/gate', 'open'));
  const good = text();
  expect(await roll(keys('team', 'worse'), keys('more', 'b'), file('/etc/gate', 'shut'), gate)).toMatchObject({
    verdict: 'invalid',
    restored: true,
  });
  expect(text()).toBe(good);
});

it('reports keys that were removed or changed by someone else', async () => {
  await roll(keys('team', 'a'));
  writeFileSync(host.path(FILE), text().replace(key('a'), key('evil')));
  expect((await host.bus.reported(({ differences }) => differences.length > 0)).differences).toEqual([
    'SshKeys/team: other keys in /home/core/.ssh/authorized_keys',
  ]);
  rmSync(host.path(FILE));
  await host.bus.reported(
    ({ differences }) => differences[0] === 'SshKeys/team: its keys are missing in /home/core/.ssh/authorized_keys',
  );
  expect(await roll(keys('team', 'a'))).toMatchObject({ verdict: 'applied', changed: ['SshKeys/team'] });
});

itAsRoot(
  `follows no link of a user out of the home${isRoot ? '' : ' (skipped: only root can give the link to a user)'}`,
  async () => {
    mkdirSync(host.path('root/.ssh'), { recursive: true });
    writeFileSync(host.path('root/.ssh/authorized_keys'), "root's own\n");
    symlinkSync('../../root/.ssh', host.path('home/core/.ssh'));
    lchownSync(host.path('home/core/.ssh'), 4242, 4242);
    expect(await roll(keys('team', 'a'))).toMatchObject({ verdict: 'failed', restored: true });
    rmSync(host.path('home/core/.ssh'));
    mkdirSync(host.path('home/core/.ssh'));
    symlinkSync('../../../root/.ssh/authorized_keys', host.path(FILE));
    expect(await roll(keys('team', 'a'))).toMatchObject({ verdict: 'failed', restored: true });
    expect(readFileSync(host.path('root/.ssh/authorized_keys'), 'utf8')).toBe("root's own\n");
  },
);

it.each([
  ['a user that does not exist', { user: 'ghost', keys: [key('a')] }, 'failed', 'there is no user ghost'],
  [
    'a user without a home',
    { user: 'lost', keys: [key('a')] },
    'failed',
    'the home directory /nowhere of lost does not exist',
  ],
  ['a key with a line break', { user: 'core', keys: ['a\nb'] }, 'invalid', 'keys must be a list of lines'],
])('%s', async (_name, spec, verdict, reason) => {
  expect(await roll({ kind: 'SshKeys', name: 'x', spec })).toMatchObject({
    verdict,
    restored: true,
    reason: expect.stringContaining(reason) as string,
  });
});

it('does not read a file that its user has made huge, and names it', async () => {
  mkdirSync(host.path('home/core/.ssh'));
  writeFileSync(host.path(FILE), '');
  truncateSync(host.path(FILE), 17 * 2 ** 20);
  expect(await roll(keys('team', 'a'))).toMatchObject({
    verdict: 'failed',
    restored: true,
    reason:
      'SshKeys/team: /home/core/.ssh/authorized_keys has 17825792 bytes, and at most 16777216 are read: remove what does not belong there',
  });
});

describe('keys of a user who was removed', () => {
  const passwd = (): string => host.path('etc/passwd');
  const removeUser = (): void => writeFileSync(passwd(), readFileSync(passwd(), 'utf8').replace(/^core:.*\n/m, ''));
  const why = expect.stringContaining(
    'SshKeys/team cannot be deleted: there is no user core on this machine: ',
  ) as string;

  it('can be deleted if the home is gone as well, because nothing is left of them', async () => {
    await roll(keys('team', 'a'));
    removeUser();
    rmSync(host.path('home/core'), { recursive: true });
    expect(await roll()).toMatchObject({ verdict: 'applied', restored: true, hash: EMPTY_HASH });
    expect(Object.keys(host.tree())).toEqual(['etc', 'etc/passwd', 'home']);
  });

  it('are removed from a home that is still there', async () => {
    mkdirSync(host.path('home/core/.ssh'));
    writeFileSync(host.path(FILE), 'ssh-rsa AAAA theirs\n');
    const before = host.tree();
    await roll(keys('team', 'a'));
    removeUser();
    expect(await roll()).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
    expect(host.tree()).toEqual({ ...before, 'etc/passwd': host.tree()['etc/passwd'] });
  });

  it('stay if nobody can tell whether the user exists, and the reason names both and the way out', async () => {
    await roll(keys('team', 'a'));
    const known = readFileSync(passwd());
    rmSync(passwd());
    expect(await roll()).toMatchObject({ verdict: 'failed', restored: true, untouched: true, reason: why });
    expect(text()).toContain(key('a'));
    writeFileSync(passwd(), known);
    expect(await roll()).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
    expect(existsSync(host.path(FILE))).toBe(false);
  });

  it('cannot be deleted while only the home of the user is missing', async () => {
    await roll(keys('team', 'a'));
    rmSync(host.path('home/core'), { recursive: true });
    const reason = 'SshKeys/team cannot be deleted: the home directory /home/core of core does not exist: create it';
    expect(await roll()).toMatchObject({ verdict: 'failed', reason: expect.stringContaining(reason) as string });
  });
});

it('refuses a file at the same place', async () => {
  expect(await roll(keys('team', 'a'), file('/home/core/.ssh/authorized_keys', ''))).toMatchObject({
    verdict: 'invalid',
  });
});

it('refuses a file with several hard links before it changes anything, and names no field of another kind', async () => {
  mkdirSync(host.path('home/core/.ssh'));
  writeFileSync(host.path(FILE), 'own\n');
  linkSync(host.path(FILE), host.path('home/core/other'));
  expect(await roll(keys('team', 'a'))).toMatchObject({
    verdict: 'failed',
    untouched: true,
    reason:
      'SshKeys/team: /home/core/.ssh/authorized_keys has 2 hard links, and the others would keep the old content: replace it with a copy that has none',
  });
});

describe('a file that somebody edited around the marks', () => {
  const text = (): string => readFileSync(host.path(FILE), 'utf8');
  const write = (...parts: readonly string[]): void => writeFileSync(host.path(FILE), parts.join(''));
  const own = `${key('own')}\n`;
  const block = (...names: readonly string[]): string =>
    `# BEGIN Sluice SshKeys/team\n${names.map((name) => `${key(name)}\n`).join('')}# END Sluice SshKeys/team\n`;

  it('keeps no copy of keys that were removed from the config, if it has the marks more than once', async () => {
    await roll(keys('team', 'a', 'gone'));
    write(block('a', 'gone'), own, block('a', 'gone'), own);
    expect((await host.bus.reported(({ differences }) => differences.length > 0)).differences).toEqual([
      'SshKeys/team: its keys are 2 times in /home/core/.ssh/authorized_keys',
    ]);
    expect(await roll(keys('team', 'a'))).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(block('a') + own + own);
    write(block('a'), own, block('gone'));
    expect(await roll()).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(own);
  });

  it('finds its keys if an editor has changed the ends of the lines', async () => {
    await roll(keys('team', 'a', 'gone'));
    write(`${block('a', 'gone')}${own}`.replaceAll('\n', '\r\n'));
    expect(await roll(keys('team', 'a'))).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(`${block('a')}${own.trimEnd()}\r\n`);
  });

  it.each([
    ['end', (whole: string) => whole.replace('# END Sluice SshKeys/team\n', '')],
    ['begin', (whole: string) => whole.replace('# BEGIN Sluice SshKeys/team\n', '')],
  ])('does not count its keys as deleted if their %s mark is missing', async (_name, broken) => {
    await roll(keys('team', 'a'));
    write(broken(block('a')), own);
    expect((await host.bus.reported(({ differences }) => differences.length > 0)).differences).toEqual([
      expect.stringContaining('SshKeys/team: a mark of its keys is missing in /home/core/.ssh/authorized_keys'),
    ]);
    const refused = { verdict: 'failed', reason: expect.stringContaining('only one of the two marks of SshKeys/team') };
    expect(await roll()).toMatchObject(refused);
    expect(await roll(keys('team', 'b'))).toMatchObject(refused);
    expect(text()).toBe(broken(block('a')) + own);
    write(block('a'), own);
    expect(await roll()).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(own);
  });

  it('puts back the mark that is missing when the same keys are repaired', async () => {
    await roll(keys('team', 'a', 'c'));
    write(own, block('a', 'c').replace('# END Sluice SshKeys/team\n', ''), own);
    expect(await roll(keys('team', 'a', 'c'), file('/etc/other', 'x'))).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(own + block('a', 'c') + own);
    write(block('a', 'c').replace('# BEGIN Sluice SshKeys/team\n', ''), own);
    expect(await roll(keys('team', 'a', 'c'))).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(block('a', 'c') + own);
  });

  it('keeps lines of others that are next to marks without a counterpart', async () => {
    await roll(keys('team', 'a'));
    const half = '# BEGIN Sluice SshKeys/team\n';
    write(half, own, block('a'), '# END Sluice SshKeys/team\n');
    expect(await roll(keys('team', 'b'))).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(own + block('b'));
    expect(await roll()).toMatchObject({ verdict: 'applied' });
    expect(text()).toBe(own);
  });
});

test('adds blocks to any text and removes them without a trace', () => {
  const line = fc.constantFrom('a', 'b b', '', '# BEGIN Sluice x', '# END Sluice x', '# END Sluice y');
  const anyText = fc.tuple(fc.array(line), fc.boolean()).map(([lines, ends]) => lines.join('\n') + (ends ? '\n' : ''));
  fc.assert(
    fc.property(
      anyText,
      fc.array(fc.constantFrom('k1', 'k2')),
      fc.array(fc.constantFrom('k3')),
      (around, one, other) => {
        fc.pre(blocksOf(around, 'n').length === 0);
        const both = withBlock(withBlock(around, 'n', one), 'm', other);
        expect([blocksOf(both, 'n'), blocksOf(both, 'm')]).toEqual([[one], [other]]);
        expect(withoutBlocks(withoutBlocks(both, 'n'), 'm')).toBe(around);
        expect(withoutBlocks(withoutBlocks(withBlock(both, 'n', other), 'm'), 'n')).toBe(around);
      },
    ),
  );
});

test.each([
  ['', 'the user lost has no home directory: correct it on the node'],
  ['var/lost', 'the user lost has the home directory "var/lost", which is not absolute: correct it on the node'],
])('a user with the home directory %j is refused, and the reason says so', async (home, words) => {
  writeFileSync(host.path('etc/passwd'), `lost:x:2000:2000::${home}:/bin/sh\n`);
  await expect(userOf(host.root, 'lost')).rejects.toThrow(words);
});

describe('a user who is not in /etc/passwd', () => {
  it('is found through the name services of the machine', async () => {
    mkdirSync(host.path('home/remote'));
    const names: string[] = [];
    const lookUp = (_: string, name: string): Promise<string> => {
      names.push(name);
      return Promise.resolve(name === 'remote' ? 'remote:*:60123:60124:Remote:/home/remote:/bin/sh\n' : '');
    };
    expect(await userOf(host.root, 'remote', lookUp)).toEqual({
      name: 'remote',
      uid: 60_123,
      gid: 60_124,
      home: '/home/remote',
      folder: '/home/remote/.ssh',
      file: '/home/remote/.ssh/authorized_keys',
    });
    await expect(userOf(host.root, 'nobody-knows', lookUp)).rejects.toThrow(
      'there is no user nobody-knows on this machine',
    );
    await userOf(host.root, 'core', lookUp);
    expect(names).toEqual(['remote', 'nobody-knows']);
  });

  it("is not found if the root is not the machine's own", async () => {
    await expect(userOf(host.root, 'remote')).rejects.toThrow('there is no user remote on this machine');
  });
});
