import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT, runTool } from './tools.fixture.js';

interface Complaint {
  readonly severity: string;
  readonly code: string;
  readonly message: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

function complaints(folder: string): readonly Complaint[] {
  const { stdout, stderr } = runTool(
    'oxlint/bin/oxlint',
    ['--config', '.oxlintrc.json', '--format', 'json', '.'],
    folder,
  );
  if (stdout === '') throw new Error(stderr);
  return (JSON.parse(stdout) as { diagnostics: Complaint[] }).diagnostics;
}

test('oxlint finds no error', () => {
  const errors = complaints(ROOT).filter(({ severity }) => severity === 'error');
  expect(
    errors.map(({ filename, labels, code, message }) => `${filename}:${labels[0]?.span.line ?? 0} ${code} ${message}`),
  ).toEqual([]);
});

test('cores must not use time, randomness or promises', () => {
  const tree = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-lint-')));
  copyFileSync(join(ROOT, '.oxlintrc.json'), join(tree, '.oxlintrc.json')); // its globs are relative to its folder
  const planted: Readonly<Record<string, string>> = {
    'services/merger/src/core/time.ts': 'export const now = (): number => Date.now();',
    'services/merger/src/core/chance.ts': 'export const chance = (): number => Math.random();',
    'services/merger/src/core/wait.ts': 'export async function wait(): Promise<void> {}',
    'libs/rules/src/time.ts': 'export const now = (): Date => new Date();',
    'libs/engine/src/any.ts': 'export const any = (value: any): unknown => value;',
    'libs/engine/src/certain.ts': 'export const certain = (value?: string): string => value!;',
    'libs/engine/src/default.ts': 'export default 1;',
  };
  const innocent = { 'services/merger/src/shell/time.ts': planted['services/merger/src/core/time.ts'] ?? '' };
  for (const [file, text] of Object.entries({ ...planted, ...innocent })) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), `${text}\n`);
  }
  const guilty = complaints(tree)
    .filter(({ severity }) => severity === 'error')
    .map(({ filename }) => filename);
  rmSync(tree, { recursive: true });
  expect([...new Set(guilty)].sort()).toEqual(Object.keys(planted).sort());
});

test('everything compiles, including specs', () => {
  const { status, stdout } = runTool('ts7/lib/tsc.js', ['-p', 'tsconfig.json', '--noEmit', '--pretty', 'false']);
  expect(stdout).toBe('');
  expect(status).toBe(0);
});

test('cores and libraries without I/O compile without Node.js, clocks and the console', () => {
  const { status, stdout } = runTool('ts7/lib/tsc.js', ['-p', 'tsconfig.core.json', '--noEmit', '--pretty', 'false']);
  expect(stdout).toBe('');
  expect(status).toBe(0);
});
