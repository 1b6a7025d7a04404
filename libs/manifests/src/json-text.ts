/** The JSON of a text, or where it stops being JSON. Positions start at 1. */
export type JsonText =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly line: number; readonly column: number };

/** Parses a text as JSON. */
export function parseJson(text: string): JsonText {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    const before = text.slice(0, firstError(text)).split('\n');
    return { ok: false, line: before.length, column: (before.at(-1) ?? '').length + 1 };
  }
}

const SPACE = /[ \t\r\n]*/y;
// oxlint-disable-next-line no-control-regex -- JSON forbids them inside strings
const SCALAR =
  /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/**
 * The offset of the first invalid token. Engines report it only sometimes and in different ways. This runs only for
 * texts that were already refused.
 */
function firstError(text: string): number {
  const open: string[] = [];
  let expected: 'value' | 'key' | 'first-key' | 'first-item' | 'colon' | 'next' | 'end' = 'value';
  let at = 0;
  const token = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  for (;;) {
    at += token(SPACE)?.length ?? 0;
    const char = text[at];
    if (char === undefined || expected === 'end') return at;
    const closes = char === '}' || char === ']';
    if (closes) {
      if (!(expected === 'next' || expected === (char === '}' ? 'first-key' : 'first-item')) || open.pop() !== char)
        return at;
    } else if (expected === 'next' || expected === 'colon') {
      if (char !== (expected === 'next' ? ',' : ':')) return at;
      expected = expected === 'colon' || open.at(-1) === ']' ? 'value' : 'key';
      at += 1;
      continue;
    } else if ((char === '{' || char === '[') && (expected === 'value' || expected === 'first-item')) {
      open.push(char === '{' ? '}' : ']');
      expected = char === '{' ? 'first-key' : 'first-item';
      at += 1;
      continue;
    } else {
      const scalar = token(SCALAR);
      const isKey: boolean = expected === 'key' || expected === 'first-key';
      if (scalar === undefined || (isKey && char !== '"')) return at;
      at += scalar.length;
      expected = isKey ? 'colon' : open.length === 0 ? 'end' : 'next';
      continue;
    }
    at += 1;
    expected = open.length === 0 ? 'end' : 'next';
  }
}
