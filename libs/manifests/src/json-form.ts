import { isObject, placeOf } from './shape/reader.js';
import type { Problem } from './shape/checked.js';

/** The most bytes of a change as published, and of a config as rendered: NATS takes 1 MiB with headers. */
export const MAX_CHANGE_BYTES = 900 * 1024;
export const MAX_CONFIG_BYTES = MAX_CHANGE_BYTES;
/** No config needs deeper nesting, and the limit keeps recursive readers safe. */
export const MAX_DEPTH = 64;

/** What is wrong with JSON of any schema: too deep, or with text or numbers that have no canonical form. */
export function jsonProblems(value: unknown): readonly Problem[] {
  const problems: Problem[] = [];
  walk(value, '', 1, problems);
  return problems;
}

/** The number of bytes of a text in UTF-8. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A pair takes four bytes in all; its first half was counted as three, its second as one.
    if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) i += 1;
  }
  return bytes;
}

/** Whether a text is valid Unicode: half a surrogate pair has no UTF-8, and so no digest. */
export const isUnicode = (text: string): boolean => !LONE_SURROGATE.test(text);

const LONE_SURROGATE = /[\ud800-\udfff]/u;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** Its start is enough to find it. */
const MAX_PLACE = 40;

/** Stops at the first place that is too deep, because there may be no end below it. */
function walk(value: unknown, at: string, depth: number, problems: Problem[]): boolean {
  if (typeof value === 'string' && !isUnicode(value))
    problems.push({
      at,
      code: 'not-unicode',
      message: 'contains invalid Unicode: an unpaired surrogate, or bytes that are not UTF-8',
    });
  if (typeof value === 'number' && !Number.isFinite(value))
    problems.push({ at, code: 'wrong-type', message: 'is not a finite number' });
  if (typeof value !== 'object' || value === null) return true;
  if (depth > MAX_DEPTH) {
    problems.push({
      at: at.length > MAX_PLACE ? `${at.slice(0, MAX_PLACE)}…` : at,
      code: 'too-deep',
      message: `must not be nested deeper than ${MAX_DEPTH}`,
    });
    return false;
  }
  if (Array.isArray(value)) return value.every((item, i) => walk(item, `${at}[${i}]`, depth + 1, problems));
  return (
    isObject(value) &&
    Object.keys(value).every((key) => {
      const place = placeOf(at, key);
      if (!isUnicode(key))
        problems.push({
          at,
          code: 'not-unicode',
          message: 'a key contains invalid Unicode: an unpaired surrogate, or bytes that are not UTF-8',
        });
      return walk(value[key], place, depth + 1, problems);
    })
  );
}
