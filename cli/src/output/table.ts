import { stripVTControlCharacters } from 'node:util';
import { roughDuration } from '#libs/manifests/lean';

/** Columns aligned like in kubectl: upper-case headers, three spaces between columns, none at the end of a line. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heads, ...rows].map((row) => row.map(oneLine));
  const widths = heads.map((_, column) => Math.max(...all.map((row) => width(row[column] ?? ''))));
  return all
    .map((row) =>
      heads
        .map((_, column) => pad(row[column] ?? '', widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
}

/** `1 node` or `3 nodes`; `many` where the plural is not the word with an s. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** The text on one line, so that nobody can forge a row. */
export const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ');

/** How long ago that was; empty if there is no time. */
export function age(since: string, now: Date): string {
  const ms = now.getTime() - Date.parse(since);
  return Number.isNaN(ms) ? '' : roughDuration(Math.max(0, ms));
}

/** How many columns of a terminal a text takes. */
export const width = (text: string): number => [...stripVTControlCharacters(text)].length;
export const pad = (text: string, to: number): string => text + ' '.repeat(Math.max(0, to - width(text)));

/** A colour's escape sequence, or one character. */
const PIECE = new RegExp('\\u001b\\[[0-9;]*m|[^]', 'gu');

/** The text cut to fit, with an ellipsis if something was cut. */
export function fit(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let left = columns - 1;
  let result = '';
  // Escape sequences take no column and are kept, so that a colour that starts also ends.
  for (const [part] of text.matchAll(PIECE)) {
    if (part.startsWith('\u001b')) result += part;
    else if (left > 0) {
      result += part;
      left -= 1;
      if (left === 0) result += '…';
    }
  }
  return result;
}
