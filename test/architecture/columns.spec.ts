import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ROOT, run } from './tools.fixture.js';

const COLUMNS = 120;

// The formatter breaks everything except literals and comments.
test(`no line of code is longer than ${COLUMNS} columns, except for literals that cannot be split`, () => {
  const files = run('git', ['ls-files', '*.ts', '*.cjs', '*.mjs', '*.js']).stdout.split('\n').filter(isWritten);
  expect(files.length).toBeGreaterThan(500);
  expect(files.flatMap(offenders)).toEqual([]);
});

test('a long comment and a long expression are reported, a long literal is not', () => {
  const long = 'x'.repeat(COLUMNS);
  const found = (text: string): readonly number[] => tooLong('a.ts', text).map(({ line }) => line);
  expect(found(`// ${long}\n\nconst ${long} = 1;\n`)).toEqual([1, 3]);
  expect(found(`const a = '${long}';\nconst b = \`${long}\${a}${long}\`;\nconst c = /${long}/;\n`)).toEqual([]);
});

const isWritten = (file: string): boolean => file !== '' && !file.includes('/generated/');

function offenders(file: string): readonly string[] {
  return tooLong(file, readFileSync(join(ROOT, file), 'utf8')).map(
    ({ line, columns }) => `${file}:${line} has ${columns} columns`,
  );
}

interface LongLine {
  readonly line: number;
  readonly columns: number;
}

/** The lines that are too long even if the columns of literals do not count. */
function tooLong(file: string, text: string): readonly LongLine[] {
  const lines = text.split('\n').map((content, at) => ({ line: at + 1, columns: content.length }));
  if (lines.every(({ columns }) => columns <= COLUMNS)) return [];
  const inLiterals = literalColumns(file, text);
  return lines.filter(({ line, columns }) => columns - (inLiterals.get(line) ?? 0) > COLUMNS);
}

/** The number of columns in each line that belong to strings, templates and patterns. */
function literalColumns(file: string, text: string): ReadonlyMap<number, number> {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const columns = new Map<number, number>();
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || ts.isRegularExpressionLiteral(node))
      count(node.getStart(source), node.end);
    else ts.forEachChild(node, visit);
  };
  const count = (start: number, end: number): void => {
    const first = source.getLineAndCharacterOfPosition(start);
    const last = source.getLineAndCharacterOfPosition(end);
    for (let line = first.line; line <= last.line; line += 1) {
      const from = line === first.line ? first.character : 0;
      const to = line === last.line ? last.character : Infinity;
      const whole = source.text.split('\n')[line]?.length ?? 0;
      columns.set(line + 1, (columns.get(line + 1) ?? 0) + Math.min(to, whole) - from);
    }
  };
  visit(source);
  return columns;
}
