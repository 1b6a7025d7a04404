import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import type { ConfigEntry } from '#libs/contracts';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { neededFileCalls } from '../../file-calls.js';

const why = process.geteuid?.() === 0 ? undefined : 'only root can give files away';
const suite = why === undefined ? describe : describe.skip;

/** A file, directory or link that exists on a node before Sluice. */
interface Thing {
  readonly is: 'file' | 'directory' | 'link' | 'hard link' | 'pipe';
  readonly path: string;
  readonly to: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly content: string;
  /** When it was modified, in seconds since 1970. */
  readonly modified: number;
  readonly acl: boolean;
  readonly xattr: boolean;
}

const NOT_UTF8 = 'not\xff\xfeutf8';
const NAMES = ['a', 'b', 'c d', 'ü', '-rf', '*', '.x', 'a=b', 'line\nbreak', 'n'.repeat(200)];
const path = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`);
const id = fc.constantFrom(0, 33, 4242);
const things: fc.Arbitrary<readonly Thing[]> = fc.array(
  fc.record({
    is: fc.constantFrom('file', 'file', 'directory', 'directory', 'link', 'hard link', 'pipe'),
    path,
    to: fc.oneof(path, fc.constantFrom('a', '../a', '.', '..', 'b/../a', '/nowhere', NOT_UTF8)),
    mode: fc.constantFrom(0o644, 0o600, 0o755, 0o4755, 0o2770, 0o400),
    uid: id,
    gid: id,
    content: fc.string({ maxLength: 20 }),
    modified: fc.constantFrom(-1e9, -1.5, -0.25, 0, 0.75, 1.7e9, 1e10),
    acl: fc.boolean(),
    xattr: fc.boolean(),
  }),
  { minLength: 3, maxLength: 12 },
);

/** What the owner of a folder does between two leases to the path of an entry of the first one. */
interface Obstacle {
  readonly entry: number;
  readonly is: 'directory' | 'link' | 'pipe' | 'hard link' | 'edit' | 'other folder' | 'link in place of the folder';
}
const obstacles: fc.Arbitrary<readonly Obstacle[]> = fc.array(
  fc.record({
    entry: fc.nat({ max: 4 }),
    is: fc.constantFrom(
      'directory',
      'link',
      'pipe',
      'hard link',
      'edit',
      'other folder',
      'link in place of the folder',
    ),
  }),
  { maxLength: 2 },
);
const optional = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(one, { nil: undefined });
const entry: fc.Arbitrary<ConfigEntry> = fc
  .record({
    kind: fc.constantFrom('File', 'File', 'Directory'),
    path,
    content: fc.string({ maxLength: 20 }),
    mode: optional(fc.constantFrom('0644', '0700', '4755')),
    owner: optional(fc.constantFrom('0', '33')),
    group: optional(fc.constantFrom('0', '33')),
    hardLinks: optional(fc.constant('break')),
  })
  .map(({ kind, content, hardLinks, ...spec }) => ({
    kind,
    name: `x${createHash('sha256').update(spec.path).digest('hex').slice(0, 8)}`,
    spec: JSON.parse(JSON.stringify({ ...spec, ...(kind === 'File' ? { content, hardLinks } : {}) })) as object,
  })) as fc.Arbitrary<ConfigEntry>;
const entries = fc.uniqueArray(entry, { minLength: 1, maxLength: 5, selector: ({ name }) => name });

/** In the format of the kernel: the owner, a user, the group, the mask and everybody else. */
const acl = (mode: number): Buffer => {
  const rows = [
    [1, (mode >> 6) & 7, -1],
    [2, 7, 5151],
    [4, 5, -1],
    [16, (mode >> 3) & 7, -1],
    [32, mode & 7, -1],
  ] as const;
  const text = Buffer.alloc(4 + 8 * rows.length);
  text.writeUInt32LE(2, 0);
  rows.forEach(([tag, permissions, who], i) => {
    text.writeUInt16LE(tag, 4 + 8 * i);
    text.writeUInt16LE(permissions, 6 + 8 * i);
    text.writeInt32LE(who, 8 + 8 * i);
  });
  return text;
};

function opened<T>(at: string, work: (fd: number) => T): T {
  const fd = openSync(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}

/** Creates everything that can be created. If two things conflict, the first one wins. */
function build(host: Host, all: readonly Thing[]): void {
  for (const thing of all) {
    try {
      make(host, thing);
    } catch {
      // something else is there
    }
  }
}

function make(host: Host, { is, path: at, to, mode, uid, gid, content, ...more }: Thing): void {
  const real = host.path(at);
  if (is === 'file') writeFileSync(real, content, { flag: 'wx' });
  if (is === 'directory') mkdirSync(real);
  if (is === 'link') symlinkSync(to === NOT_UTF8 ? Buffer.from(to, 'latin1') : to, real);
  if (is === 'hard link') return linkSync(host.path(to), real);
  if (is === 'pipe') execFileSync('mkfifo', ['--', real], { stdio: 'ignore' });
  lchownSync(real, uid, gid);
  if (is === 'link' || is === 'pipe') return;
  const xattrs = {
    ...(more.xattr ? { 'user.note': Buffer.from([0, 1, 255]).toString('base64') } : {}),
    ...(more.acl ? { 'system.posix_acl_access': acl(mode).toString('base64') } : {}),
  };
  opened(real, (fd) => neededFileCalls().setXattrs(fd, xattrs));
  chmodSync(real, mode);
  utimesSync(real, more.modified, more.modified);
}

function obstruct(host: Host, entries: readonly ConfigEntry[], { entry: i, is }: Obstacle): void {
  const at = entries[i % entries.length]?.spec['path'];
  if (typeof at !== 'string') return;
  const real = host.path(at);
  const folder = dirname(real);
  try {
    if (is === 'edit') return writeFileSync(real, 'theirs');
    if (is === 'hard link') return lstatSync(real).isFile() ? linkSync(real, `${real}.other`) : undefined;
    if (is === 'directory' || is === 'link' || is === 'pipe') rmSync(real, { recursive: true });
    else if (folder === host.root) return;
    else renameSync(folder, `${folder}.old`);
    if (is === 'directory') mkdirSync(join(real, 'x'), { recursive: true });
    if (is === 'link') symlinkSync(Buffer.from(NOT_UTF8, 'latin1'), real);
    if (is === 'pipe') execFileSync('mkfifo', ['--', real], { stdio: 'ignore' });
    if (is === 'other folder') mkdirSync(folder, { mode: 0o700 });
    if (is === 'link in place of the folder') symlinkSync('/', folder);
    lchownSync(is === 'other folder' || is === 'link in place of the folder' ? folder : real, 4242, 4242);
  } catch {
    // the first obstacle is in the way of the second
  }
}

/** Everything that an outsider can see, except what no program can set: inode numbers and ctime. */
function world(host: Host): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const names = new Map<bigint, string>();
  const walk = (folder: string): void => {
    for (const name of readdirSync(host.path(folder)).sort()) {
      const below = join(folder, name);
      const at = host.path(below);
      const stat = lstatSync(at, { bigint: true });
      const [isFile, isDirectory] = [stat.isFile(), stat.isDirectory()];
      const first = names.get(stat.ino) ?? below;
      names.set(stat.ino, first);
      found[below] = {
        mode: stat.mode.toString(8),
        owner: `${stat.uid}:${stat.gid}`,
        links: Number(stat.nlink),
        sameAs: first,
        ...(stat.isSymbolicLink() ? { to: readlinkSync(at, 'latin1') } : {}),
        ...(isFile ? { content: readFileSync(at, 'latin1'), modified: stat.mtimeNs.toString() } : {}),
        ...(isFile || isDirectory ? { xattrs: opened(at, (fd) => neededFileCalls().xattrs(fd)) } : {}),
      };
      if (isDirectory) walk(below);
    }
  };
  walk('');
  return found;
}

const gate = probe('gate', { file: { path: '/gate', matches: '^open' } });

const RUNS = 40;

suite(`trees of all kinds${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  it('are the same after a failed lease and after a deletion', async () => {
    let [applied, refused] = [0, 0];
    await fc.assert(
      fc.asyncProperty(things, entries, entries, obstacles, fc.boolean(), async (...given) => {
        const [before, first, second, between, allowSetuid] = given;
        const host = new Host();
        try {
          build(host, before);
          writeFileSync(host.path('gate'), 'open');
          await host.start({ allowSetuid });
          const seen = (): Record<string, unknown> => asAsked(world(host), [...first, ...second]);
          const original = seen();
          const failed = await host.bus.roll(config(...first, file('/gate', 'shut'), gate));
          expect({ verdict: failed.verdict, restored: failed.restored, world: seen() }).toEqual({
            verdict: expect.stringMatching(/failed|invalid/) as string,
            restored: true,
            world: original,
          });
          const { verdict, reason } = await host.bus.roll(config(...first));
          if (verdict !== 'applied') {
            refused += 1;
            expect({ reason, world: seen() }).toEqual({ reason, world: original });
            return;
          }
          applied += 1;
          for (const obstacle of between) obstruct(host, first, obstacle);
          const meanwhile = seen();
          const again = await host.bus.roll(config(...second, file('/gate', 'shut'), gate));
          expect({ reason: again.reason, restored: again.restored, world: seen() }).toEqual({
            reason: again.reason,
            restored: true,
            world: meanwhile,
          });
          const deleted = await host.bus.roll(config());
          if (between.length === 0)
            expect({ reason: deleted.reason, world: seen() }).toEqual({ reason: '', world: original });
          else if (deleted.verdict !== 'applied')
            expect({ reason: deleted.reason, restored: deleted.restored, world: seen() }).toEqual({
              reason: deleted.reason,
              restored: true,
              world: meanwhile,
            });
        } finally {
          await host.end();
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
    // Both outcomes occur.
    expect(Math.min(applied, refused)).toBeGreaterThan(0);
  });
});

/** With `hardLinks: break`, the new files have no other hard links. */
function asAsked(tree: Record<string, unknown>, all: readonly ConfigEntry[]): Record<string, unknown> {
  if (all.every(({ spec }) => spec['hardLinks'] === undefined)) return tree;
  return Object.fromEntries(
    Object.entries(tree).map(([at, seen]) => {
      const { links: _, sameAs: __, ...rest } = seen as Record<string, unknown>;
      return [at, 'content' in rest ? rest : seen];
    }),
  );
}
