import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './tools.fixture.js';

/** A statement whose value is a promise that nobody awaits, returns, catches or marks with `void`. */
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

/** `.catch(…)`, or `.then(…, …)`: somebody listens for the failure; a `.finally(…)` behind it adds none. */
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

// oxlint's own rule needs types, and with them a second compiler; TypeScript's is here.
test('no promise is left alone', () => {
  const { fileNames, options } = configured();
  const program = programOf(
    fileNames.filter((name) => !/\.(spec|fixture)\.ts$/.test(name)),
    options,
  );
  const checker = program.getTypeChecker();
  const own = program
    .getSourceFiles()
    .filter(
      (file) => file.fileName.startsWith(ROOT) && !file.fileName.includes('/node_modules/') && !file.isDeclarationFile,
    );
  expect(own.length).toBeGreaterThan(100);
  expect(own.flatMap((file) => floatingIn(file, checker))).toEqual([]);
}, 120_000);

test('and one that is would be seen', () => {
  const planted = join(ROOT, 'libs/engine/src/planted.ts');
  const text = `async function f(): Promise<void> {}\nf();\nvoid f();\nf().catch(() => {});\ntrue && f();\nexport async function g() { await f(); return f(); }\n`;
  const { options } = configured();
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, ...rest) =>
    name === planted
      ? ts.createSourceFile(name, text, ts.ScriptTarget.ES2023, true)
      : getSourceFile.call(host, name, ...rest);
  const program = ts.createProgram([planted], { ...options, types: [], noEmit: true }, host);
  const file = program.getSourceFile(planted) as ts.SourceFile;
  expect(floatingIn(file, program.getTypeChecker())).toEqual([
    'libs/engine/src/planted.ts:2 f()',
    'libs/engine/src/planted.ts:5 true && f()',
  ]);
});
