import { isObject, placeOf } from './shape/reader.js';
import type { Problem } from './shape/checked.js';
import { isUnicode } from './utf8.js';

export { isUnicode, utf8Bytes } from './utf8.js';

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
