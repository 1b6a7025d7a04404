import type { Schema } from '../shape/checked.js';

/**
 * The same pattern for Go's regular expressions, which Kubernetes uses. They have no lookahead, no repetition above
 * 1,000 and no `\u0000`. A lookahead at the start becomes a separate condition.
 */
export function goPattern(pattern: string): Schema {
  const conditions: Schema[] = [];
  let rest = pattern.replaceAll('\\u0000', '\\x00');
  while (/^\^\(\?[=!]/.test(rest)) {
    const end = closing(rest, 1);
    const inner = `^${rest.slice(4, end)}`;
    conditions.push(rest[3] === '!' ? { not: { pattern: inner } } : bounded(inner));
    rest = `^${rest.slice(end + 1)}`;
  }
  if (/\(\?[=!<]/.test(rest))
    throw new Error(`there is a lookahead in the middle of ${pattern}, which Go does not support`);
  return conditions.length === 0 ? { pattern: rest } : { pattern: rest, allOf: conditions };
}

/** `^X{1,16000}$` as a length and `^X+$`. */
function bounded(pattern: string): Schema {
  const match = /^\^(\.|\[[^\]]*\])\{1,(\d+)\}\$$/.exec(pattern);
  return match === null ? { pattern } : { pattern: `^${match[1]}+$`, maxLength: Number(match[2]) };
}

/** The end of the group that starts at `from`. */
function closing(text: string, from: number): number {
  let [depth, inClass] = [0, false];
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (char === '\\') i += 1;
    else if (inClass) inClass = char !== ']';
    else if (char === '[') inClass = true;
    else if (char === '(') depth += 1;
    else if (char === ')' && (depth -= 1) === 0) return i;
  }
  throw new Error(`a group of ${text} does not end`);
}
