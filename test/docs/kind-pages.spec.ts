import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kindPages } from './kind-pages.js';

const ROOT = join(__dirname, '../..');
const FOLDER = join(ROOT, 'docs/reference/kinds');

test('docs/reference/kinds is up to date: npm run reference', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-kinds-'));
  const pages = kindPages(ROOT);
  for (const [file, text] of Object.entries(pages)) writeFileSync(join(folder, file), text);
  execFileSync(join(ROOT, 'node_modules/.bin/oxfmt'), ['--config', join(ROOT, '.oxfmtrc.json'), folder]);
  const read = (from: string) =>
    Object.fromEntries(readdirSync(from).map((file) => [file, readFileSync(join(from, file), 'utf8')]));
  expect(read(FOLDER)).toEqual(read(folder));
  rmSync(folder, { recursive: true });
});

test('every page has an example and a table of fields', () => {
  const pages = Object.entries(kindPages(ROOT)).filter(([file]) => file !== 'README.md');
  expect(pages.length).toBeGreaterThan(10);
  expect(pages.filter(([, text]) => !text.includes('## Example') || !text.includes('| `'))).toEqual([]);
});
