import { parseArgs } from 'node:util';

/** The options of a program that runs rounds from a seed. */
export interface Rounds {
  readonly seed: number;
  readonly rounds: number;
  /** The flags that are set. */
  readonly flags: ReadonlySet<string>;
}

/**
 * Reads `--rounds N --seed S` and flags. For invalid options, prints the error and ends the process with 2. `help`: the
 * output of `--help`.
 */
export function roundsOrExit(
  help: string,
  args: readonly string[],
  otherwise: { readonly rounds: number },
  flags: readonly string[] = [],
): Rounds {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help);
    return process.exit(0);
  }
  try {
    return readRounds(args, otherwise, flags);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(2);
  }
}

/** The number in an option. Throws a readable error if it is not a number above 0. */
export function wholeNumber(option: string, text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${option}: ${text} is not a whole number above 0`);
  return Number(text);
}

function readRounds(args: readonly string[], otherwise: { readonly rounds: number }, flags: readonly string[]): Rounds {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      rounds: { type: 'string' },
      ...Object.fromEntries(flags.map((name) => [name, { type: 'boolean' as const }])),
    },
  });
  const whole = (name: 'seed' | 'rounds', unsaid: number): number => {
    const value = (values as Partial<Record<string, string>>)[name];
    return value === undefined ? unsaid : wholeNumber(name, value);
  };
  return {
    seed: whole('seed', 1),
    rounds: whole('rounds', otherwise.rounds),
    flags: new Set(flags.filter((name) => (values as Record<string, unknown>)[name] === true)),
  };
}
