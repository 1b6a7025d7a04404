import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './tools.fixture.js';

/** A statement whose value is a promise that is neither awaited, returned, caught nor marked with `void`. */
function floatingIn(file: ts.SourceFile, checker: ts.TypeChecker): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isExpressionStatement(node) && floats(node.expression, checker)) {
      found.push(
        `${file.fileName.slice(ROOT.length + 1)}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1} ${node.expression.getText().slice(0, 60)}`,
      );
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function floats(expression: ts.Expression, checker: ts.TypeChecker): boolean {
  if (ts.isParenthesizedExpression(expression)) return floats(expression.expression, checker);
  if (ts.isBinaryExpression(expression) && /^(&&|\|\||\?\?)$/.test(expression.operatorToken.getText()))
    return floats(expression.right, checker);
  if (ts.isConditionalExpression(expression))
    return floats(expression.whenTrue, checker) || floats(expression.whenFalse, checker);
  if (!ts.isCallExpression(expression) || isCaught(expression)) return false;
  return checker.getTypeAtLocation(expression).getProperty('then') !== undefined;
}

/** `.catch(…)` or `.then(…, …)` handles a rejection. A `.finally(…)` after it does not change that. */
function isCaught({ expression, arguments: args }: ts.CallExpression): boolean {
  if (!ts.isPropertyAccessExpression(expression)) return false;
  if (expression.name.text === 'finally')
    return ts.isCallExpression(expression.expression) && isCaught(expression.expression);
  return (expression.name.text === 'catch' && args.length > 0) || (expression.name.text === 'then' && args.length > 1);
}

function programOf(roots: readonly string[], options: ts.CompilerOptions): ts.Program {
  return ts.createProgram([...roots], { ...options, noEmit: true });
}

function configured(): ts.ParsedCommandLine {
  const path = join(ROOT, 'tsconfig.json');
  return ts.parseJsonConfigFileContent(ts.readConfigFile(path, ts.sys.readFile).config, ts.sys, ROOT);
}

/**
 * Reads and writes of a plain record with a key that is any string. A person who chooses the key can choose
 * `constructor`, which every object has: use a Map, or ask `Object.hasOwn` in the same statement.
 */
function namedIn(file: ts.SourceFile, checker: ts.TypeChecker): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isElementAccessExpression(node) && isByName(node, checker) && !isGuarded(node)) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      found.push(`${file.fileName.slice(ROOT.length + 1)}:${line + 1} ${node.getText().slice(0, 60)}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The names of fields and tables are ours. */
const OWN_KEYS = /^(field|table)$/;

function isByName(
  { expression, argumentExpression: key }: ts.ElementAccessExpression,
  checker: ts.TypeChecker,
): boolean {
  if (OWN_KEYS.test(key.getText())) return false;
  const [record, name] = [checker.getTypeAtLocation(expression), checker.getTypeAtLocation(key)];
  const isAnyText = (name.isUnion() ? name.types : [name]).some(({ flags }) => (flags & ts.TypeFlags.String) !== 0);
  const parts = record.isUnion() ? record.types : [record];
  return isAnyText && parts.some((type) => checker.getIndexInfoOfType(type, ts.IndexKind.String) !== undefined);
}

function isGuarded(node: ts.Node): boolean {
  let statement = node;
  while (!ts.isStatement(statement) && statement.parent !== undefined) statement = statement.parent;
  return statement.getText().includes('Object.hasOwn(');
}

const ownFiles = (program: ts.Program): readonly ts.SourceFile[] =>
  program
    .getSourceFiles()
    .filter(
      (file) => file.fileName.startsWith(ROOT) && !file.fileName.includes('/node_modules/') && !file.isDeclarationFile,
    );

/** A program with one more file. */
function programWith(
  planted: string,
  text: string,
): { readonly file: ts.SourceFile; readonly checker: ts.TypeChecker } {
  const { options } = configured();
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, ...rest) =>
    name === planted
      ? ts.createSourceFile(name, text, ts.ScriptTarget.ES2023, true)
      : getSourceFile.call(host, name, ...rest);
  const program = ts.createProgram([planted], { ...options, types: [], noEmit: true }, host);
  return { file: program.getSourceFile(planted) as ts.SourceFile, checker: program.getTypeChecker() };
}

// oxlint's own rules need types, and thus a second compiler. TypeScript's compiler is available here.
describe('in production code', () => {
  let files: readonly ts.SourceFile[];
  let checker: ts.TypeChecker;
  beforeAll(() => {
    const { fileNames, options } = configured();
    const program = programOf(
      fileNames.filter((name) => !/\.(spec|fixture)\.ts$/.test(name)),
      options,
    );
    checker = program.getTypeChecker();
    files = ownFiles(program);
  }, 120_000);

  test('no promise is left floating', () => {
    expect(files.length).toBeGreaterThan(100);
    expect(files.flatMap((file) => floatingIn(file, checker))).toEqual([]);
  });

  // Cores count and look up by the names of pools, nodes, labels and fragments. An applier's keys contain a slash.
  test('no core of a service uses a plain record by a name that people choose', () => {
    const cores = files.filter(
      ({ fileName }) => /\/services\/[a-z]+\/src\/core\//.test(fileName) && !fileName.includes('/services/applier/'),
    );
    expect(cores.length).toBeGreaterThan(50);
    expect(cores.flatMap((file) => namedIn(file, checker))).toEqual([]);
  });
});

test('a floating promise would be reported', () => {
  const text = `async function f(): Promise<void> {}\nf();\nvoid f();\nf().catch(() => {});\ntrue && f();\nexport async function g() { await f(); return f(); }\n`;
  const { file, checker } = programWith(join(ROOT, 'libs/engine/src/planted.ts'), text);
  expect(floatingIn(file, checker)).toEqual([
    'libs/engine/src/planted.ts:2 f()',
    'libs/engine/src/planted.ts:5 true && f()',
  ]);
});

test('a record that is used by any name would be reported', () => {
  const text = `
export function f(counts: Record<string, number>, name: string, kind: 'a' | 'b', rows: number[]): unknown {
  counts[name] = (counts[name] ?? 0) + 1;
  const guarded = Object.hasOwn(counts, name) ? counts[name] : 0;
  return [guarded, counts[kind], counts['a'], rows[0]];
}
`;
  const { file, checker } = programWith(join(ROOT, 'libs/engine/src/planted.ts'), text);
  expect(namedIn(file, checker)).toEqual(Array.from({ length: 2 }, () => 'libs/engine/src/planted.ts:3 counts[name]'));
});
