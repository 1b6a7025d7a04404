/** A piece of a text with templates: literal text, or a property of the node or a binding to insert. */
export type TemplatePart =
  | { readonly part: 'text'; readonly text: string }
  | { readonly part: 'name' }
  | { readonly part: 'label'; readonly key: string }
  | { readonly part: 'binding'; readonly name: string };

/** What is wrong with one template; `code` is that of the reason. */
export interface TemplateProblem {
  readonly code: 'bad-template' | 'unknown-template-key';
  readonly message: string;
}

/** The result of parsing: the pieces, or every problem. */
export type ParsedTemplate =
  | { readonly ok: true; readonly parts: readonly TemplatePart[] }
  | { readonly ok: false; readonly problems: readonly TemplateProblem[] };

/** Whether a text contains templates. */
export const hasTemplate = (text: string): boolean => text.includes(OPEN);

/**
 * Splits a text at its templates: `{{ node.name }}`, `{{ node.labels.KEY }}`, `{{ bindings.NAME }}`, and `{{{{` for a
 * literal `{{`.
 */
export function parseTemplate(text: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
  const problems: TemplateProblem[] = [];
  let literal = '';
  let at = 0;
  for (;;) {
    const open = text.indexOf(OPEN, at);
    if (open < 0) break;
    literal += text.slice(at, open);
    if (text.startsWith(ESCAPED, open)) {
      literal += OPEN;
      at = open + ESCAPED.length;
      continue;
    }
    const close = text.indexOf(CLOSE, open);
    if (close < 0) {
      problems.push(bad('{{ has no closing }}; use {{{{ for a literal {{'));
      break;
    }
    if (literal !== '') parts.push({ part: 'text', text: literal });
    literal = '';
    const parsed = parseExpression(text.slice(open + OPEN.length, close).trim());
    if ('code' in parsed) problems.push(parsed);
    else parts.push(parsed);
    at = close + CLOSE.length;
  }
  if (problems.length > 0) return { ok: false, problems };
  literal += text.slice(at);
  if (literal !== '') parts.push({ part: 'text', text: literal });
  return { ok: true, parts };
}

/** The name of a binding. */
export const BINDING_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

const OPEN = '{{';
const ESCAPED = '{{{{';
const CLOSE = '}}';
const LABELS = 'node.labels.';
const BINDINGS = 'bindings.';
const KNOWN = 'use node.name, node.labels.KEY or bindings.NAME';

function parseExpression(expression: string): TemplatePart | TemplateProblem {
  if (/\s/.test(expression)) return bad(`{{ ${excerpt(expression)} }} must be a single name; ${KNOWN}`);
  if (expression === 'node.name') return { part: 'name' };
  if (expression.startsWith(LABELS) && expression.length > LABELS.length) {
    return { part: 'label', key: expression.slice(LABELS.length) };
  }
  if (expression.startsWith(BINDINGS) && BINDING_NAME.test(expression.slice(BINDINGS.length))) {
    return { part: 'binding', name: expression.slice(BINDINGS.length) };
  }
  if (/^node\.[^.]+/.test(expression)) {
    return {
      code: 'unknown-template-key',
      message: `{{ ${excerpt(expression)} }} is not a property of a node; ${KNOWN}`,
    };
  }
  return bad(`{{ ${excerpt(expression)} }} is not a valid template; ${KNOWN}, or {{{{ for a literal {{`);
}

const bad = (message: string): TemplateProblem => ({ code: 'bad-template', message });

/** Keeps messages readable if a closing brace is missing a page above. */
const excerpt = (text: string): string => (text.length <= 60 ? text : `${text.slice(0, 60)}…`);
