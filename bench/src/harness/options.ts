import { parseArgs } from 'node:util';
import type { Part } from './part.js';

export interface Options {
  readonly parts: readonly string[];
  readonly isJson: boolean;
  readonly size: number;
  readonly save: boolean;
}

export const DEFAULT_SIZE = 10_000;

/** The output of `--help`. */
export const helpOf = (
  parts: readonly Pick<Part, 'name' | 'what' | 'onRequest'>[],
): string => `npm run bench -- [PART...] [options]

  --json       print one JSON object on stdout, and progress on stderr (use npm run -s bench)
  --size N     the number of nodes (${DEFAULT_SIZE}); results of other sizes are not saved
  --no-save    do not save the results in bench/results

Parts (default: all, except those on request):
${parts.map(({ name, what, onRequest }) => `  ${name.padEnd(14)} ${what}${onRequest === true ? ' (on request)' : ''}`).join('\n')}
`;

/** Reads the command line. Throws for unknown options. */
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
  if (unknown.length > 0) throw new TypeError(`unknown part ${unknown.join(', ')}; known parts: ${known.join(', ')}`);
  const chosen = parts.filter(({ name, onRequest }) =>
    positionals.length === 0 ? onRequest !== true : positionals.includes(name),
  );
  // Another size is for experiments: the goals do not apply to its figures. Parts that only run on request have no
  // goals.
  const isGoalsSize = size === DEFAULT_SIZE || chosen.every(({ onRequest }) => onRequest === true);
  return { parts: chosen.map(({ name }) => name), isJson: values.json, size, save: !values['no-save'] && isGoalsSize };
}
