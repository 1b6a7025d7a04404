/**
 * Lines of Sluice in a file that others write too. They are between two marks at the top of the file, so that the lines
 * of others stay unchanged byte for byte when they are removed.
 */
const begin = (name: string): string => `# BEGIN Sluice ${name}`;
const end = (name: string): string => `# END Sluice ${name}`;
/** A whole line. Editors of other systems may have changed its end. */
const MARK = /(?<![^\n])(# (?:BEGIN|END) Sluice [^\r\n]*)\r?\n/g;

interface Place {
  readonly from: number;
  readonly to: number;
}

interface Block extends Place {
  readonly lines: readonly string[];
}

/**
 * The lines of each block of that name. Normally there is at most one. There are more if somebody wrote the file twice
 * into itself, for example.
 */
export const blocksOf = (text: string, name: string): readonly (readonly string[])[] =>
  placesOf(text, name).map(({ lines }) => lines);

/** With one block of that name: in the place of the first one, or at the top. */
export function withBlock(text: string, name: string, lines: readonly string[]): string {
  const block = [begin(name), ...lines, end(name)].map((line) => `${line}\n`).join('');
  const { from, to } = placesOf(text, name)[0] ?? { from: 0, to: 0 };
  return withoutBlocks(text.slice(0, from), name) + block + withoutBlocks(text.slice(to), name);
}

/** Also without marks that have no counterpart: two of them could become a block with the lines of others in it. */
export function withoutBlocks(text: string, name: string): string {
  const rest = without(text, placesOf(text, name));
  return without(
    rest,
    marksOf(rest).filter(({ line }) => line === begin(name) || line === end(name)),
  );
}

const without = (text: string, places: readonly Place[]): string =>
  places.reduceRight((rest, { from, to }) => rest.slice(0, from) + rest.slice(to), text);

/**
 * A mark without its counterpart does not count, and no other mark is inside a block, so that no lines of others are
 * removed.
 */
function placesOf(text: string, name: string): readonly Block[] {
  const places: Block[] = [];
  let open: Place | undefined;
  for (const mark of marksOf(text)) {
    if (mark.line === end(name) && open !== undefined) {
      const lines = text.slice(open.to, mark.from).split('\n').slice(0, -1);
      places.push({ from: open.from, to: mark.to, lines });
    }
    open = mark.line === begin(name) ? mark : undefined;
  }
  return places;
}

/** The marks of all names. */
const marksOf = (text: string): readonly (Place & { readonly line: string })[] =>
  [...text.matchAll(MARK)].map((found) => ({
    line: found[1] ?? '',
    from: found.index,
    to: found.index + found[0].length,
  }));

const rowsOf = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
const bareOf = (row = ''): string => row.replace(/\r?\n$/, '');

/**
 * Whether somebody has removed one mark of the only block of that name, and left lines next to the other mark: they may
 * be those of the block, and nobody can tell.
 */
export function isHalf(text: string, name: string): boolean {
  if (placesOf(text, name).length > 0) return false;
  const rows = rowsOf(text).map(bareOf);
  const isLine = (row = ''): boolean => row.trim() !== '' && !row.startsWith('#');
  return rows.some(
    (row, i) => (row === begin(name) && isLine(rows[i + 1])) || (row === end(name) && isLine(rows[i - 1])),
  );
}

/** Puts the mark back that is missing in the only block of that name, if exactly these lines are next to the other. */
export function mended(text: string, name: string, lines: readonly string[]): string {
  if (!isHalf(text, name)) return text;
  const rows = rowsOf(text);
  const isBlock = (from: number): boolean => from >= 0 && lines.every((line, i) => bareOf(rows[from + i]) === line);
  const opened = rows.findIndex((row, i) => bareOf(row) === begin(name) && isBlock(i + 1));
  const closed = rows.findIndex((row, i) => bareOf(row) === end(name) && isBlock(i - lines.length));
  if (opened >= 0) {
    const after = opened + 1 + lines.length;
    const block = rows.slice(opened, after).map((row) => `${bareOf(row)}\n`);
    return [...rows.slice(0, opened), ...block, `${end(name)}\n`, ...rows.slice(after)].join('');
  }
  if (closed < 0) return text;
  const first = closed - lines.length;
  return [...rows.slice(0, first), `${begin(name)}\n`, ...rows.slice(first)].join('');
}
