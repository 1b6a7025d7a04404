import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Chance } from '../../simulation/world/chance.js';
import { manifest, selecting, type Manifest } from '../../e2e/manifests.js';

/** Where the trees are, below the root of each node. */
const FOLDER = '/srv/fuzz';
const STRANGER = 4_242;

/** A file, folder or link on the node that a hostile or careless user could have created. */
interface Entry {
  readonly path: string;
  readonly is: 'directory' | 'file' | 'pipe' | 'link' | 'hard link';
  readonly to?: string;
  readonly mode?: number;
  readonly uid?: number;
}

/** Folders first. `own` belongs to a user, who can replace its content. */
const THINGS: readonly Entry[] = [
  { path: 'plain', is: 'directory' },
  { path: 'own', is: 'directory', uid: STRANGER },
  { path: 'plain/file', is: 'file', mode: 0o640 },
  { path: 'own/file', is: 'file', mode: 0o600, uid: STRANGER },
  { path: 'plain/suid', is: 'file', mode: 0o4755 },
  { path: 'plain/hard', is: 'hard link', to: 'plain/file' },
  { path: 'pipe', is: 'pipe' },
  { path: 'alias', is: 'link', to: 'plain' },
  { path: 'absolute', is: 'link', to: `${FOLDER}/plain` },
  { path: 'own/alias', is: 'link', to: '../plain', uid: STRANGER },
  { path: 'loop', is: 'link', to: 'loop' },
  { path: 'dangling', is: 'link', to: 'nowhere/at/all' },
  { path: 'up', is: 'link', to: '../../../../../../../../../../tmp' },
  { path: 'outside', is: 'link', to: 'OUTSIDE' },
];
const NAMES = [...THINGS.map(({ path }) => path), 'new', 'new/below', 'x'.repeat(255)];

/** Puts a tree of links, hard links, owners, modes and a pipe below the root of a node. Only root can set owners. */
export function plantTree(chance: Chance, root: string, outside: string): void {
  const folder = join(root, FOLDER);
  mkdirSync(folder, { recursive: true });
  for (const { path, is, to = '', mode, uid } of THINGS.filter(({ is }) => is === 'directory' || chance.flip(0.8))) {
    const at = join(folder, path);
    if (is === 'directory') mkdirSync(at);
    if (is === 'file') writeFileSync(at, `of ${path}\n`);
    if (is === 'pipe') execFileSync('mkfifo', [at]);
    if (is === 'link') symlinkSync(to === 'OUTSIDE' ? outside : to, at);
    if (is === 'hard link') {
      if (lstatSync(join(folder, to), { throwIfNoEntry: false }) !== undefined) linkSync(join(folder, to), at);
      continue;
    }
    if (uid !== undefined && process.geteuid?.() === 0) lchownSync(at, uid, uid);
    if (mode !== undefined) chmodSync(at, mode);
  }
}

export const clearTree = (root: string): void => rmSync(join(root, FOLDER), { recursive: true, force: true });

/** What an outsider sees below a folder: types, modes, owners, links, contents and modification times. */
export function pictureOf(folder: string): readonly string[] {
  // `recursive` of readdir would follow links.
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const at = join(folder, entry.name);
      const stat = lstatSync(at, { bigint: true });
      const content = entry.isSymbolicLink()
        ? ` -> ${readlinkSync(at)}`
        : entry.isFile()
          ? ` ${createHash('sha256').update(readFileSync(at)).digest('hex').slice(0, 12)} ${stat.mtimeNs}`
          : '';
      const links = entry.isDirectory() ? '' : ` ${stat.nlink}`;
      const line = `${at} ${stat.mode.toString(8)} ${stat.uid}:${stat.gid}${links}${content}`;
      return entry.isDirectory() ? [line, ...pictureOf(at)] : [line];
    });
}

export const treeOf = (root: string): readonly string[] => pictureOf(join(root, dirname(FOLDER)));

const OWNERS = ['0', '33', '4242', '4294967294', 'nobody'];
const ODD_OWNERS = ['no-such-user', '4294967296', '-1', 'a:b', '', ' ', 'ü'];
const MODES = ['0644', '0000', '4755', '2755', '1777', '7777'];
const ODD_MODES = ['9999', 'u+s'];
const TARGETS = [
  'plain',
  '/etc/passwd',
  '..',
  '.',
  '',
  'a\nb',
  '../../../../../../tmp',
  'x'.repeat(4_095),
  '{{ .node }}',
];
/** Patterns that would keep a backtracking engine busy forever, or that RE2 does not support. */
const PATTERNS = [
  '^(a+)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(x+x+)+y',
  '(.*.*.*.*.*.*)*=',
  '(a)\\1',
  '(?=a)a',
  '(?<!a)b',
  '[',
  'a{1000}{1000}',
  '(?i)OF',
  '\\p{L}+',
  'a'.repeat(3_000),
  '('.repeat(500) + ')'.repeat(500),
  '\0',
];

/** Valid manifests that may cause trouble on a node with such a tree. */
export function hostileManifests(chance: Chance, role: string): readonly Manifest[] {
  const place = (): string => {
    const path = `${FOLDER}/${chance.pick(NAMES)}`;
    const odd = [`${path}/../f`, `${path}/`, `/${path}`, `${path}/${'d/'.repeat(300)}f`];
    return chance.flip(0.1) ? chance.pick(odd) : chance.pick([path, path, `${path}/f`]);
  };
  const maybe = (field: string, values: readonly string[]): object =>
    chance.flip(0.3) ? { [field]: chance.pick(values) } : {};
  const spec = chance.pick<() => readonly [kind: string, spec: object]>([
    () => [
      'File',
      { path: place(), content: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n', ...maybe('hardLinks', ['break']) },
    ],
    () => ['File', { path: place(), content: '/w==', encoding: 'base64' }],
    () => ['File', { path: place(), content: '{{ .labels.role }}{{ ', template: false }],
    () => ['Directory', { path: place() }],
    () => ['Link', { path: place(), target: chance.pick(TARGETS) }],
    () => ['Probe', { file: { path: place(), matches: chance.pick(PATTERNS) }, timeout: '2s', retries: 0 }],
  ]);
  const isOdd = chance.flip(0.1);
  const [owners, modes] = [isOdd ? ODD_OWNERS : OWNERS, isOdd ? ODD_MODES : MODES];
  return Array.from({ length: chance.integer(1, 4) }, (_, i) => {
    const [kind, what] = spec();
    const owned = kind === 'File' || kind === 'Directory';
    return manifest(kind, `hostile-${i}`, {
      nodeSelector: selecting(role),
      ...what,
      ...(owned ? { ...maybe('owner', owners), ...maybe('group', owners), ...maybe('mode', modes) } : {}),
    });
  });
}
