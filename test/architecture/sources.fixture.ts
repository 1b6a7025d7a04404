import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { ROOT } from './tools.fixture.js';

export interface Source {
  /** Relative to the repository. */
  readonly path: string;
  readonly tree: ts.SourceFile;
}

/** The parsed sources below a folder, specs left out. */
export function sourcesBelow(folder: string): readonly Source[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const paths = files
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => /(?<!\.(spec|fixture))\.ts$/.test(path));
  return paths.map((path) => ({
    path,
    tree: ts.createSourceFile(path, readFileSync(join(ROOT, path), 'utf8'), ts.ScriptTarget.ES2023, true),
  }));
}

/** The position of a node, as text. */
export function placeOf({ path, tree }: Source, node: ts.Node): string {
  return `${path}:${tree.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
}

export interface Call {
  readonly source: Source;
  readonly call: ts.CallExpression;
  readonly args: readonly ts.Expression[];
}

/** Every call of a function or method with this name. */
export function callsOf(sources: readonly Source[], name: string): readonly Call[] {
  const calls: Call[] = [];
  for (const source of sources) {
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && calleeName(node.expression) === name)
        calls.push({ source, call: node, args: node.arguments });
      ts.forEachChild(node, visit);
    };
    visit(source.tree);
  }
  return calls;
}

function calleeName(callee: ts.Expression): string {
  if (ts.isIdentifier(callee)) return callee.text;
  return ts.isPropertyAccessExpression(callee) ? callee.name.text : '';
}

/** The texts that an expression can evaluate to, if they are literals in it. Otherwise undefined. */
export function textsOf(expression: ts.Expression | undefined): readonly string[] | undefined {
  if (expression === undefined) return undefined;
  if (ts.isStringLiteralLike(expression)) return [expression.text];
  if (ts.isParenthesizedExpression(expression) || ts.isAsExpression(expression) || ts.isSatisfiesExpression(expression))
    return textsOf(expression.expression);
  if (!ts.isConditionalExpression(expression)) return undefined;
  const yes = textsOf(expression.whenTrue);
  const no = textsOf(expression.whenFalse);
  return yes === undefined || no === undefined ? undefined : [...yes, ...no];
}

/** The value of a property of an object literal, if that is what the expression is. */
export function propertyOf(expression: ts.Expression | undefined, name: string): ts.Expression | undefined {
  if (expression !== undefined && ts.isAsExpression(expression)) return propertyOf(expression.expression, name);
  if (expression === undefined || !ts.isObjectLiteralExpression(expression)) return undefined;
  const found = expression.properties.find(
    (one) => ts.isPropertyAssignment(one) && ts.isIdentifier(one.name) && one.name.text === name,
  );
  return found !== undefined && ts.isPropertyAssignment(found) ? found.initializer : undefined;
}
