import { createTwoFilesPatch } from 'diff';
import { stringify } from 'yaml';
import { EMPTY_CONFIG, fragmentId, type Config, type ConfigEntry } from '#libs/contracts';
import type { Colours } from '../io.js';

/** What differs between two configs of a node: a unified diff per fragment, with a file's content as text. */
export function configDiff(from: Config | null | undefined, to: Config | null | undefined, colours: Colours): string {
  const [before, after] = [byId(from ?? EMPTY_CONFIG), byId(to ?? EMPTY_CONFIG)];
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort();
  return ids
    .map((id) => entryDiff(id, before.get(id), after.get(id), colours))
    .filter((text) => text !== '')
    .join('\n');
}

const byId = ({ fragments }: Config): ReadonlyMap<string, ConfigEntry> =>
  new Map(fragments.map((entry) => [fragmentId(entry), entry]));

function entryDiff(
  id: string,
  before: ConfigEntry | undefined,
  after: ConfigEntry | undefined,
  colours: Colours,
): string {
  const [a, b] = [asText(before), asText(after)];
  if (a === b) return '';
  const patch = createTwoFilesPatch(
    before === undefined ? '/dev/null' : `a/${id}`,
    after === undefined ? '/dev/null' : `b/${id}`,
    a,
    b,
    '',
    '',
    { context: 3 },
  );
  // The first line is a ruler for patches of several files.
  return patch
    .trimEnd()
    .split('\n')
    .filter((line) => !/^={10,}$/.test(line))
    .map((line) => paint(line.replace(/^(---|\+\+\+) (.*?)\t?$/, '$1 $2'), colours))
    .join('\n');
}

/** YAML, whose block scalars show a file's content line by line. */
const asText = (entry: ConfigEntry | undefined): string =>
  entry === undefined ? '' : stringify(entry.spec, { lineWidth: 0, blockQuote: 'literal' });

function paint(line: string, colours: Colours): string {
  if (line.startsWith('+++') || line.startsWith('---')) return colours.bold(line);
  if (line.startsWith('@@')) return colours.cyan(line);
  if (line.startsWith('+')) return colours.green(line);
  return line.startsWith('-') ? colours.red(line) : line;
}
