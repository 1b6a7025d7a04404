import type { Reason } from '#libs/contracts';
import type { PlacedReason } from './exit.js';
import type { Colours } from './io.js';

/** More would not be read, and would scroll earlier output off the screen. */
const MOST_REASONS = 50;

/** Each message about a field once, with its fragments. */
export function reasonTexts(
  reasons: readonly PlacedReason[],
  bold = (text: string): string => text,
): readonly ReasonText[] {
  const groups = Map.groupBy(reasons, ({ field, message }) => JSON.stringify([field, message]));
  return [...groups.values()].map((group) => {
    const message = group[0]?.message ?? '';
    const places = [...new Set(group.map(placeOf))].filter((place) => place !== '').join(', ');
    const nodes = [...new Set(group.flatMap((reason) => reason.nodes ?? []))];
    const excerpt = group[0]?.place?.excerpt ?? [];
    return { text: places === '' ? message : `${bold(places)}: ${message}`, nodes, excerpt };
  });
}

interface ReasonText {
  readonly text: string;
  readonly nodes: readonly string[];
  readonly excerpt: readonly string[];
}

/** Reasons as lines: which fragments and fields, what is wrong, which nodes. */
export function reasonLines(reasons: readonly PlacedReason[], colours: Colours, mark = '✖'): string[] {
  const texts = reasonTexts(reasons, colours.bold);
  const sign = mark === '✖' ? colours.red(mark) : colours.yellow(mark);
  const lines = texts.slice(0, MOST_REASONS).flatMap(({ text, nodes, excerpt }) => {
    // A reason names only some nodes if there are many, and then says how many there are.
    const rest = Number(/\b(\d+) nodes\b/.exec(text)?.[1] ?? 0) - nodes.length;
    const more = rest > 0 ? ` and ${rest} more` : '';
    return [
      `  ${sign} ${text.replaceAll('\n', '\n    ')}${nodes.length === 0 ? '' : colours.dim(` (${nodes.join(', ')}${more})`)}`,
      ...excerpt.map((line) => colours.dim(`      ${line}`)),
    ];
  });
  return texts.length <= MOST_REASONS ? lines : [...lines, `  ${texts.length - MOST_REASONS} more; -o json has all`];
}

/** A `spec` that is there adds nothing to the fragment, and some messages already start with the field. */
const placeOf = ({ fragment, field, code, message }: Reason): string =>
  [fragment, (field === 'spec' && code !== 'required') || message.startsWith(field) ? '' : field]
    .filter((part) => part !== '')
    .join(' ');
