import {
  appendFileSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import fc from 'fast-check';
import type { ConfigEntry } from '#libs/contracts';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';
import { userOf } from './ssh-user.js';
import { blockOf, withBlock, withoutBlock } from '../marked-block.js';

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

it("adds lines of its own, as the user's alone, and takes the folder away that it made", async () => {
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
  ['that is no UTF-8', 'ssh-rsa AAAA m\xfcller\n'],
])('gives a file %s back byte by byte, and keeps what others add meanwhile', async (_name, theirs) => {
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

it('takes a bad change back to the keys that were there', async () => {
  await roll(keys('team', 'a'), file('/etc/gate', 'open'));
  const good = text();
  expect(await roll(keys('team', 'worse'), keys('more', 'b'), file('/etc/gate', 'shut'), gate)).toMatchObject({
    verdict: 'invalid',
    restored: true,
  });
  expect(text()).toBe(good);
});

it('finds keys that somebody took out or changed', async () => {
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
  `follows no link of a user's out of the home${isRoot ? '' : ' (skipped: only root can give the link to a user)'}`,
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
  ['a user that there is not', { user: 'ghost', keys: [key('a')] }, 'failed', 'there is no user ghost'],
  ['a user without a home', { user: 'lost', keys: [key('a')] }, 'failed', 'the home /nowhere of lost does not exist'],
  ['keys that are none', { user: 'core', keys: ['a\nb'] }, 'invalid', 'keys must be a list of lines'],
])('%s', async (_name, spec, verdict, reason) => {
  expect(await roll({ kind: 'SshKeys', name: 'x', spec })).toMatchObject({
    verdict,
    restored: true,
    reason: expect.stringContaining(reason) as string,
  });
});

it('refuses a file at the same place', async () => {
  expect(await roll(keys('team', 'a'), file('/home/core/.ssh/authorized_keys', ''))).toMatchObject({
    verdict: 'invalid',
  });
});

test('blocks go in and out of any text without a trace', () => {
  const line = fc.constantFrom('a', 'b b', '', '# BEGIN Sluice x', '# END Sluice x', '# END Sluice y');
  const anyText = fc.tuple(fc.array(line), fc.boolean()).map(([lines, ends]) => lines.join('\n') + (ends ? '\n' : ''));
  fc.assert(
    fc.property(
      anyText,
      fc.array(fc.constantFrom('k1', 'k2')),
      fc.array(fc.constantFrom('k3')),
      (around, one, other) => {
        fc.pre(blockOf(around, 'n') === undefined);
        const both = withBlock(withBlock(around, 'n', one), 'm', other);
        expect([blockOf(both, 'n'), blockOf(both, 'm')]).toEqual([one, other]);
        expect(withoutBlock(withoutBlock(both, 'n'), 'm')).toBe(around);
        expect(withoutBlock(withoutBlock(withBlock(both, 'n', other), 'm'), 'n')).toBe(around);
      },
    ),
  );
});

describe('a user whom /etc/passwd does not know', () => {
  it('is whom the name services of the machine know', async () => {
    mkdirSync(host.path('home/remote'));
    const asked: string[] = [];
    const lookUp = (_: string, name: string): Promise<string> => {
      asked.push(name);
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
    expect(asked).toEqual(['remote', 'nobody-knows']);
  });

  it("is nobody where the root is not the machine's own", async () => {
    await expect(userOf(host.root, 'remote')).rejects.toThrow('there is no user remote on this machine');
  });
});
