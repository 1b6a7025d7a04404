import type { Reason } from '#libs/contracts';
import type { FileProblem, Position } from '#libs/manifests';
import type { PlacedReason } from '../output/exit.js';
import { withoutObeyed } from '../output/readable.js';
import { width } from '../output/table.js';
import type { InputText } from './input-files.js';

/** A part of a file that is not a manifest. */
export function reasonOfProblem(input: InputText, { message, ...position }: FileProblem): PlacedReason {
  const reason = { fragment: '', field: '', code: 'not-a-manifest', nodes: [] };
  return placed(input, position, { ...reason, message: `${placeText(input, position)}: ${message}` });
}

/** A reason with its place in the file. The message ends with the place, unless the name already contains it. */
export function reasonAt(input: InputText, position: Position, reason: Reason): PlacedReason {
  const isNamed = !reason.fragment.startsWith(`${input.name}:`);
  const message = isNamed ? `${reason.message} (${placeText(input, position)})` : reason.message;
  return placed(input, position, { ...reason, message });
}

const placeText = ({ name }: InputText, { line, column }: Position): string => `${name}:${line}:${column}`;

function placed(input: InputText, position: Position, reason: Reason): PlacedReason {
  const { line, column } = position;
  const text = linesOf(input)[line - 1] ?? '';
  return { ...reason, place: { file: input.name, line, column, excerpt: excerptOf(text, position) } };
}

/** Split once, because a file can have thousands of lines and as many errors. */
function linesOf(input: InputText): readonly string[] {
  const lines = LINES.get(input) ?? input.text.split('\n');
  LINES.set(input, lines);
  return lines;
}
const LINES = new WeakMap<InputText, readonly string[]>();

/** How many UTF-16 code units of a long line are shown, and how many of them before the mark. */
const MOST_SHOWN = 100;
const MOST_BEFORE = 40;

function excerptOf(whole: string, { line, column, length }: Position): readonly string[] {
  const first = whole.length <= MOST_SHOWN ? 0 : Math.max(0, column - 1 - MOST_BEFORE);
  // Half an emoji is shown as a replacement character.
  const shown = withoutObeyed(whole.slice(first, first + MOST_SHOWN)).toWellFormed();
  const at = column - 1 - first;
  const number = String(line);
  // A character can take no column of the terminal, or two.
  const mark = '^'.repeat(Math.max(1, width(shown.slice(at, at + length))));
  return [
    `${number} | ${shown}`.trimEnd(),
    `${' '.repeat(number.length)} | ${' '.repeat(width(shown.slice(0, at)))}${mark}`,
  ];
}
