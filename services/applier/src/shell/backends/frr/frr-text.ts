import type { FrrLine } from '#libs/manifests/lean';

/** A line of FRR's configuration, with the lines below it and the line that ends it. */
export interface Block {
  readonly line: string;
  readonly below: readonly Block[];
  readonly end: string | undefined;
}

/** The place of a line: the lines above it, and itself. */
export type Place = readonly string[];

/** Reads the output of `show running-config`. An indented line belongs to the line above. */
export function readBlocks(text: string): readonly Block[] {
  const root: Mutable = { line: '', below: [], end: undefined, indent: -1 };
  const open: Mutable[] = [root];
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    if (line === '' || line === '!' || line === 'end' || line.startsWith('!')) continue;
    const indent = raw.length - raw.trimStart().length;
    while ((open.at(-1)?.indent ?? -1) >= indent) open.pop();
    const above = open.at(-1) ?? root;
    if (/^exit(-|$)/.test(line)) {
      const ended = above.below.at(-1);
      if (ended !== undefined) ended.end = line;
      continue;
    }
    const block: Mutable = { line, below: [], end: undefined, indent };
    above.below.push(block);
    open.push(block);
  }
  return root.below;
}

/** The text of a whole configuration, in FRR's format. */
export const textOf = (blocks: readonly Block[]): string =>
  `${blocks.flatMap((block) => linesOf(block, '')).join('\n')}\nend\n`;

/** Every line with its place, outer lines first. */
export const placesOf = (lines: readonly (Block | FrrLine)[], above: Place = []): readonly Place[] =>
  lines.flatMap(({ line, below }) => [[...above, line], ...placesOf(below, [...above, line])]);

/** Whether a line exists at that place. */
export function hasPlace(blocks: readonly Block[], [first, ...rest]: Place): boolean {
  const block = blocks.find(({ line }) => line === first);
  return block !== undefined && (rest.length === 0 || hasPlace(block.below, rest));
}

/** Removes the lines at these places. A line with other lines below it stays. */
export function without(blocks: readonly Block[], places: readonly Place[]): readonly Block[] {
  const gone = new Set(places.map(keyOf));
  const walk = (list: readonly Block[], above: Place): readonly Block[] =>
    list.flatMap((block) => {
      const place = [...above, block.line];
      const below = walk(block.below, place);
      return gone.has(keyOf(place)) && below.length === 0 ? [] : [{ ...block, below }];
    });
  return walk(blocks, []);
}

/** Adds these lines if they do not exist yet. */
export function withLines(blocks: readonly Block[], lines: readonly FrrLine[]): readonly Block[] {
  const merged = [...blocks];
  for (const { line, below } of lines) {
    const at = merged.findIndex((block) => block.line === line);
    const existing = merged[at];
    if (existing === undefined) merged.push({ line, below: withLines([], below), end: endOf(line) });
    else merged[at] = { ...existing, below: withLines(existing.below, below), end: existing.end ?? endOf(line) };
  }
  return merged;
}

export const keyOf = (place: Place): string => place.join('\n');

interface Mutable {
  readonly line: string;
  readonly below: Mutable[];
  end: string | undefined;
  readonly indent: number;
}

function linesOf({ line, below, end }: Block, indent: string): readonly string[] {
  return [
    indent + line,
    ...below.flatMap((block) => linesOf(block, `${indent} `)),
    ...(end === undefined ? [] : [indent + end]),
  ];
}

/** The line that ends a block of this kind. */
function endOf(line: string): string | undefined {
  if (line.startsWith('address-family ')) return 'exit-address-family';
  if (line.startsWith('vrf ')) return 'exit-vrf';
  return line.startsWith('router ') || line.startsWith('route-map ') ? 'exit' : undefined;
}
