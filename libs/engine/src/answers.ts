import type { Answer } from './core.js';

export const answered = (body: unknown): Answer => ({ ok: true, body });
export const refused = (code: string, message: string): Answer => ({ ok: false, code, message });

/** The page of a list after a cursor, and the next cursor if there are more items. */
export function pageOf<T>(
  items: readonly T[],
  { cursor, limit }: { readonly cursor: string; readonly limit: number },
  nameOf: (item: T) => string,
  compare: (a: string, b: string) => number = (a, b) => (a < b ? -1 : a > b ? 1 : 0),
): { readonly items: readonly T[]; readonly next: { readonly next?: string } } {
  // The item that the cursor names may be gone: continue after its place.
  const behind = cursor === '' ? items : items.filter((item) => compare(nameOf(item), cursor) > 0);
  const shown = behind.slice(0, limit);
  const last = shown.at(-1);
  return { items: shown, next: last !== undefined && behind.length > limit ? { next: nameOf(last) } : {} };
}
