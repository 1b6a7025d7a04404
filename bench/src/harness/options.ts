import { parseArgs } from 'node:util';
import type { Part } from './part.js';

export interface Options {
  readonly parts: readonly string[];
  readonly isJson: boolean;
  readonly size: number;
  readonly save: boolean;
}

export const DEFAULT_SIZE = 10_000;

/** What `--help` prints. */
export const helpOf = (
  parts: readonly Pick<Part, 'name' | 'what' | 'onRequest'>[],
): string => `npm run bench -- [PART...] [options]

  --json       one JSON object on stdout, and words for people on stderr (npm run -s bench: npm says nothing of its own before it)
  --size N     so many nodes (${DEFAULT_SIZE}); other sizes are not kept
  --no-save    do not keep the figures in bench/results

Parts; all but those on request, if none is named:
${parts.map(({ name, what, onRequest }) => `  ${name.padEnd(14)} ${what}${onRequest === true ? ' (on request)' : ''}`).join('\n')}
`;

/** Reads the command line. Throws for what it does not know. */
export function readOptions(args: readonly string[], parts: readonly Pick<Part, 'name' | 'onRequest'>[]): Options {
  const known = parts.map(({ name }) => name);
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      size: { type: 'string', default: String(DEFAULT_SIZE) },
      'no-save': { type: 'boolean', default: false },
    },
  });
  const size = Number(values.size);
  if (!Number.isInteger(size) || size < 20)
    throw new TypeError(`--size is ${JSON.stringify(values.size)}, but must be a whole number from 20`);
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`there is no part ${unknown.join(', ')}; there are ${known.join(', ')}`);
  const chosen = parts.filter(({ name, onRequest }) =>
    positionals.length === 0 ? onRequest !== true : positionals.includes(name),
  );
  // Another size is for trying: its figures are not those that the goals are about. What is only measured on request
  // has no goal.
  const isGoalsSize = size === DEFAULT_SIZE || chosen.every(({ onRequest }) => onRequest === true);
  return { parts: chosen.map(({ name }) => name), isJson: values.json, size, save: !values['no-save'] && isGoalsSize };
}
