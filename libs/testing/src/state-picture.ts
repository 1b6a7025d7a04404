/** Not part of a fold: the undo log, what a copy remembers for itself, and pending views. */
const OWN = new Set([
  'undo',
  'log',
  'memo',
  'touched',
  'shownMs',
  'reading',
  'heardMs',
  'heardAt',
  'pacedMs',
  'heardAgain',
  'strategy',
  'progress',
  'kubernetes',
  'announcements',
  'keepsAnnouncements',
]);
/** Irrelevant to a decision that undoes everything that it tried. */
const NEITHER = new Set(['undo', 'log']);
/** Monotonic times, and what is ordered by them, start over in every copy. */
const TIMES = new Set(['sinceMs', 'termsMs', 'silentSinceMs', 'atMs', 'working']);

/**
 * Everything in a fold, including indexes, as plain JSON in a fixed order. With `own`, also what a copy remembers for
 * itself.
 */
export function pictureOf(state: unknown, own = false): unknown {
  return picture(state, own) ?? {};
}

/** The same as a text, which is quicker to make and to compare. */
export function pictureTextOf(state: unknown, own = false): string {
  return textOf(state, own) ?? '{}';
}

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  value === 0 ||
  value === false ||
  typeof value === 'function';

function textOf(value: unknown, own: boolean): string | undefined {
  if (isEmpty(value)) return undefined;
  if (typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value))
    return value.length === 0 ? undefined : `[${value.map((item) => textOf(item, own)).join()}]`;
  const parts: string[] = [];
  const add = (key: string, item: unknown): void => {
    const text = textOf(item, own);
    if (text !== undefined) parts.push(`${JSON.stringify(key)}:${text}`);
  };
  if (value instanceof Map || value instanceof Set) for (const [key, item] of value.entries()) add(String(key), item);
  else for (const [key, item] of Object.entries(value as object)) if (isOfPicture(key, own)) add(key, item);
  return parts.length === 0 ? undefined : `{${parts.sort().join()}}`;
}

const isOfPicture = (key: string, own: boolean): boolean =>
  own ? !NEITHER.has(key) : !OWN.has(key) && !TIMES.has(key);

function picture(value: unknown, own: boolean): unknown {
  if (isEmpty(value)) return undefined;
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => picture(item, own));
  const entries =
    value instanceof Map || value instanceof Set
      ? [...value.entries()]
      : Object.entries(value as object).filter(([key]) => isOfPicture(key, own));
  const lines = entries
    .map(([key, item]) => [String(key), picture(item, own)] as const)
    .filter(([, item]) => item !== undefined);
  return lines.length === 0 ? undefined : Object.fromEntries(lines.sort(([a], [b]) => (a < b ? -1 : 1)));
}
