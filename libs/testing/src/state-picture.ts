/** Not part of what a fold is: the undo log, what a copy remembers for itself, and what it still has to show. */
const OWN = new Set(['undo', 'log', 'memo', 'touched', 'shownMs', 'heardMs', 'heardAt', 'heardAgain', 'strategy', 'progress', 'kubernetes', 'announcements', 'keepsAnnouncements']);
/** The undo log, and what only spares work. */
const NEITHER = new Set(['undo', 'log', 'memo']);
/** Monotonic times begin anew in every copy. */
const TIMES = new Set(['sinceMs', 'atMs']);

/** All that a fold holds, indexes included, as plain JSON in one order; with `own` also what a copy remembers for itself. */
export function pictureOf(state: unknown, own = false): unknown {
  return picture(state, own) ?? {};
}

function picture(value: unknown, own: boolean): unknown {
  if (value === null || value === undefined || value === '' || value === 0 || value === false || typeof value === 'function') return undefined;
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => picture(item, own));
  const entries = value instanceof Map || value instanceof Set ? [...value.entries()] : Object.entries(value).filter(([key]) => own ? !NEITHER.has(key) : !OWN.has(key) && !TIMES.has(key));
  const shown = entries.map(([key, item]) => [String(key), picture(item, own)] as const).filter(([, item]) => item !== undefined);
  return shown.length === 0 ? undefined : Object.fromEntries(shown.sort(([a], [b]) => (a < b ? -1 : 1)));
}
