/** A piece of a text with templates: literal text, or something of the node to be put in. */
export type TemplatePart =
  | { readonly part: 'text'; readonly text: string }
  | { readonly part: 'name' }
  | { readonly part: 'label'; readonly key: string };

/** What parsing gave; `code` is that of the reason. */
export type ParsedTemplate =
  | { readonly ok: true; readonly parts: readonly TemplatePart[] }
  | { readonly ok: false; readonly code: 'bad-template' | 'unknown-template-key'; readonly message: string };

/** Whether a text has anything for rendering to do. */
export const hasTemplate = (text: string): boolean => text.includes(OPEN);

/** Splits a text at its templates: `{{ node.name }}`, `{{ node.labels.KEY }}`, and `{{{{` for a literal `{{`. */
export function parseTemplate(text: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
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
    if (close < 0) return bad('{{ is never closed by }}; {{{{ writes a literal {{');
    const parsed = parseExpression(text.slice(open + OPEN.length, close).trim());
    if (!parsed.ok) return parsed;
    if (literal !== '') parts.push({ part: 'text', text: literal });
    literal = '';
    parts.push(parsed.part);
    at = close + CLOSE.length;
  }
  literal += text.slice(at);
  if (literal !== '') parts.push({ part: 'text', text: literal });
  return { ok: true, parts };
}

const OPEN = '{{';
const ESCAPED = '{{{{';
const CLOSE = '}}';
const LABELS = 'node.labels.';
const KNOWN = 'known are node.name and node.labels.KEY';

type Expression = { readonly ok: true; readonly part: TemplatePart } | (ParsedTemplate & { readonly ok: false });

function parseExpression(expression: string): Expression {
  if (/\s/.test(expression)) return bad(`{{ ${excerpt(expression)} }} is more than a name; ${KNOWN}`);
  if (expression === 'node.name') return { ok: true, part: { part: 'name' } };
  if (expression.startsWith(LABELS) && expression.length > LABELS.length) {
    return { ok: true, part: { part: 'label', key: expression.slice(LABELS.length) } };
  }
  if (/^node\.[^.]+/.test(expression)) {
    return { ok: false, code: 'unknown-template-key', message: `{{ ${excerpt(expression)} }} is nothing that a node has; ${KNOWN}` };
  }
  return bad(`{{ ${excerpt(expression)} }} is not understood; ${KNOWN}, and {{{{ writes a literal {{`);
}

const bad = (message: string): ParsedTemplate & { readonly ok: false } => ({ ok: false, code: 'bad-template', message });

/** Messages stay readable when somebody forgot a closing brace a page above. */
const excerpt = (text: string): string => (text.length <= 60 ? text : `${text.slice(0, 60)}…`);
