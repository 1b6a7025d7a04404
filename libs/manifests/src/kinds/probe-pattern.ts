/** A compiled pattern. */
export interface ProbePattern {
  /** Whether any part of the text matches. Takes time that is linear in the length of the text times `programSize`. */
  test(text: string): boolean;
  programSize(): number;
}

/**
 * What a probe's `matches` means, the same on every node and in every check: RE2 syntax, and `^` and `$` match at
 * lines, as in grep. A text says why the pattern cannot be used.
 *
 * The `RegExp` of JavaScript backtracks. `^(a+)+$` on 30 characters takes it minutes, in which it ends no change and
 * rolls nothing back.
 */
export function probePattern(text: string): ProbePattern | string {
  if (text.length > MAX_PATTERN) return `it is longer than ${MAX_PATTERN} characters`;
  if (groupDepth(text) > MAX_GROUP_DEPTH) return `its groups are nested more than ${MAX_GROUP_DEPTH} deep`;
  try {
    const { RE2JS } = require('re2js');
    const pattern = RE2JS.compile(text, RE2JS.MULTILINE);
    if (pattern.programSize() > MAX_PROGRAM) return `its repeats make it too large: use smaller numbers in {}`;
    return pattern;
  } catch (error) {
    return whyNot((error as Error).message);
  }
}

/** Loaded with the first pattern, which saves 5 MB in an applier without file probes. */
declare const require: (name: 're2js') => typeof import('re2js');

export const MAX_PATTERN = 1_000;
const MAX_GROUP_DEPTH = 20;
/** A literal of 1,000 characters has as many instructions. Each takes time for each character of the file. */
const MAX_PROGRAM = 2_000;

function whyNot(message: string): string {
  const why = message.replace(/^error parsing regexp: /, '').replace('`(?m)', '`');
  if (/`\(\?<?[=!]/.test(why))
    return 'it uses lookahead or lookbehind, which RE2 does not have: match the text around it too, or use two probes';
  if (/`\\[1-9k]/.test(why)) return 'it uses a backreference, which RE2 does not have: write out what must be repeated';
  return why;
}

/** Slightly too high if a bracket is in a character class, which is harmless. */
function groupDepth(pattern: string): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] === '\\') i += 1;
    else if (pattern[i] === '(') deepest = Math.max(deepest, (depth += 1));
    else if (pattern[i] === ')') depth -= 1;
  }
  return deepest;
}
