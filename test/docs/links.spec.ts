import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(__dirname, '../..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)) && !path.startsWith('.github/'));
/** Folders that start a path. Other words with a slash are kinds, subjects or programs. */
const FOLDERS = readdirSync(ROOT).filter(
  (name) => statSync(join(ROOT, name)).isDirectory() && !['node_modules', 'build', 'dist'].includes(name),
);
const PATH = new RegExp(`^(${FOLDERS.map((name) => name.replace('.', '\\.')).join('|')})/[\\w./-]*$`);

const pages = tracked.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')] as const);
const prose = (text: string): string => text.replace(/^ *```[\s\S]*?^ *```/gm, '');

test.each(pages)('every link of %s has a target', (path, text) => {
  const broken = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target as string)
    .filter((target) => !/^(https?|mailto):/.test(target))
    .filter((target) => !leadsSomewhere(path, target));
  expect(broken).toEqual([]);
});

test.each(pages)('every path that %s names exists', (_path, text) => {
  const missing = [...prose(text).matchAll(/`([^`\s]+)`/g)]
    .map(([, word]) => word as string)
    .filter((word) => PATH.test(word) && !isFigure(word) && !existsSync(join(ROOT, word)));
  expect(missing).toEqual([]);
});

/** `cli/help` is the name of a figure of the bench. */
const isFigure = (word: string): boolean => /^cli\/\w+$/.test(word);

function leadsSomewhere(path: string, target: string): boolean {
  const [file = '', anchor] = target.split('#');
  const found = file === '' ? path : normalize(join(dirname(path), file));
  if (!existsSync(join(ROOT, found))) return false;
  return anchor === undefined || !found.endsWith('.md') || anchors(found).has(anchor);
}

/** The anchors that GitHub generates for headings. */
function anchors(path: string): ReadonlySet<string> {
  const text = readFileSync(join(ROOT, path), 'utf8').replace(/^```[\s\S]*?^```/gm, '');
  return new Set(
    [...text.matchAll(/^#+ +(.*)$/gm)].map(([, title]) =>
      (title as string)
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .trim()
        .replace(/ /g, '-'),
    ),
  );
}
