import stringWidth from 'string-width';
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

/** The text on one line, so that nobody can forge a row, and without tabs, which end at any column. */
export const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*|\t/g, ' ');

/** How long ago that was; empty if there is no time. */
export function age(since: string, now: Date): string {
  const ms = now.getTime() - Date.parse(since);
  return Number.isNaN(ms) ? '' : roughDuration(Math.max(0, ms));
}

/** How many columns of a terminal a text takes: a character may take none or two, and a colour takes none. */
export const width = (text: string): number => stringWidth(text);
export const pad = (text: string, to: number): string => text + ' '.repeat(Math.max(0, to - width(text)));

const ESCAPE = /(\u001b\[[0-9;]*m)/u;
const CHARACTERS = new Intl.Segmenter();

/** Colours, and characters as people see them. */
const piecesOf = (line: string): readonly string[] =>
  line
    .split(ESCAPE)
    .flatMap((part) => (ESCAPE.test(part) ? [part] : Array.from(CHARACTERS.segment(part), ({ segment }) => segment)));

/** The text cut to fit, with an ellipsis if something was cut. */
export function fit(text: string, columns: number): string {
  const line = text.replaceAll('\t', ' ');
  if (width(line) <= columns) return line;
  let left = columns - 1;
  let result = '';
  for (const piece of piecesOf(line)) {
    // A colour takes no column and is kept, so that one that starts also ends.
    if (piece.startsWith('\u001b')) result += piece;
    else if (left >= 0) {
      left -= width(piece);
      result += left >= 0 ? piece : '…';
    }
  }
  return result;
}

/** The first names of many. */
export const few = (names: readonly string[]): string =>
  names.slice(0, FEW).join(', ') + (names.length > FEW ? ', …' : '');
const FEW = 3;
