/** Not part of what a fold is: the undo log, what a copy remembers for itself, and what it still has to show. */
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
/** Of no interest to a decision that takes back all that it tried. */
const NEITHER = new Set(['undo', 'log']);
/** Monotonic times start over in every copy; and what is in the order of such. */
const TIMES = new Set(['sinceMs', 'termsMs', 'silentSinceMs', 'atMs', 'working']);

/**
 * All that a fold holds, indexes included, as plain JSON in one order; with `own` also what a copy remembers for
 * itself.
 */
export function pictureOf(state: unknown, own = false): unknown {
  return picture(state, own) ?? {};
}

/** The same as a text: quicker to make and to compare, where only whether two are one is asked. */
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
  const tell = (key: string, item: unknown): void => {
    const text = textOf(item, own);
    if (text !== undefined) parts.push(`${JSON.stringify(key)}:${text}`);
  };
  if (value instanceof Map || value instanceof Set) for (const [key, item] of value.entries()) tell(String(key), item);
  else for (const [key, item] of Object.entries(value as object)) if (isOfPicture(key, own)) tell(key, item);
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
  const shown = entries
    .map(([key, item]) => [String(key), picture(item, own)] as const)
    .filter(([, item]) => item !== undefined);
  return shown.length === 0 ? undefined : Object.fromEntries(shown.sort(([a], [b]) => (a < b ? -1 : 1)));
}
