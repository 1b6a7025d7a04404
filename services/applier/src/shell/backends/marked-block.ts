/**
 * Lines of Sluice in a file that others write too. They are between two marks at the top of the file, so that the lines
 * of others stay unchanged byte for byte when they are removed.
 */
const begin = (name: string): string => `# BEGIN Sluice ${name}\n`;
const end = (name: string): string => `# END Sluice ${name}\n`;

/** The lines of a block; undefined if the text has no block of that name. */
export function blockOf(text: string, name: string): readonly string[] | undefined {
  const place = placeOf(text, name);
  if (place === undefined) return undefined;
  const inside = text.slice(place.from + begin(name).length, place.to - end(name).length);
  return inside === '' ? [] : inside.slice(0, -1).split('\n');
}

export function withBlock(text: string, name: string, lines: readonly string[]): string {
  const block = `${begin(name)}${lines.map((line) => `${line}\n`).join('')}${end(name)}`;
  const place = placeOf(text, name);
  return place === undefined ? block + text : text.slice(0, place.from) + block + text.slice(place.to);
}

export function withoutBlock(text: string, name: string): string {
  const place = placeOf(text, name);
  return place === undefined ? text : text.slice(0, place.from) + text.slice(place.to);
}

/**
 * A mark is at the start of a line. One without its end mark does not count, so that no lines of others are removed.
 */
function placeOf(text: string, name: string): { readonly from: number; readonly to: number } | undefined {
  const from = text.startsWith(begin(name)) ? 0 : text.indexOf(`\n${begin(name)}`) + 1;
  if (from === 0 && !text.startsWith(begin(name))) return undefined;
  const last = text.indexOf(`\n${end(name)}`, from);
  return last === -1 ? undefined : { from, to: last + 1 + end(name).length };
}
