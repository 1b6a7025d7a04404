import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../rounds.js';
import { ACTORS, actorsOf, planOf, type Plan } from './runs/plan.js';

export interface Options {
  readonly from: number;
  readonly seeds: number;
  readonly workers: number;
  readonly trace: boolean;
  readonly shrink: boolean;
  readonly json: boolean;
  readonly help: boolean;
  /** Creates the plan of a seed, without what the arguments leave out. */
  readonly plan: (seed: number) => Plan;
}

/** Reads the command line. Throws an error with a readable message. */
export function readOptions(args: readonly string[]): Options {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      kubernetes: text,
      seed: text,
      seeds: text,
      from: text,
      only: text,
      nodes: text,
      copies: text,
      minutes: text,
      workers: text,
      trace: flag,
      'no-shrink': flag,
      json: flag,
      help: { ...flag, short: 'h' },
    },
  });
  const whole = (name: 'seed' | 'seeds' | 'from' | 'nodes' | 'copies' | 'minutes' | 'workers'): number | undefined => {
    const value = values[name];
    return value === undefined ? undefined : wholeNumber(name, value);
  };
  if (values.seed !== undefined && (values.seeds ?? values.from) !== undefined)
    throw new Error('--seed is one run, --seeds and --from are several: one or the other');
  if (values.trace === true && values.seed === undefined)
    throw new Error('--trace is of one run: say which with --seed');
  const given = Object.entries({
    nodes: whole('nodes'),
    copies: whole('copies'),
    minutes: whole('minutes'),
    actors: values.only === undefined ? undefined : actorsOf(values.only),
  });
  const changes = Object.fromEntries(
    [...given, ['kubernetes', yesOrNo(values.kubernetes)] as const].filter(([, value]) => value !== undefined),
  );
  return {
    from: whole('seed') ?? whole('from') ?? 1,
    seeds: values.seed === undefined ? (whole('seeds') ?? 1) : 1,
    workers: whole('workers') ?? availableParallelism(),
    trace: values.trace ?? false,
    shrink: values['no-shrink'] !== true,
    json: values.json ?? false,
    help: values.help ?? false,
    plan: (seed) => ({ ...planOf(seed), ...changes }),
  };
}

function yesOrNo(text: string | undefined): boolean | undefined {
  if (text !== undefined && text !== 'yes' && text !== 'no')
    throw new Error(`--kubernetes: ${text} is neither yes nor no`);
  return text === undefined ? undefined : text === 'yes';
}

export const HELP = `npm run sim -- [options]

  --seeds N      run N seeds, from --from S on (1)
  --seed S       run one seed
  --only A,B:1+4 only these act; with numbers, only these of what they do ("nobody" for none)
  --nodes N      so many nodes at the start
  --copies N     so many copies of each service
  --minutes N    how long people and faults act
  --kubernetes W nodes are Kubernetes', yes or no
  --trace        print everything that happens, facts with their whole content
  --no-shrink    do not make failures smaller
  --workers N    so many processors (all)
  --json         one JSON value at the end
  --help

Who may act; a seed draws some of them:
${ACTORS.map(({ name, about }) => `  ${name.padEnd(16)} ${about}`).join('\n')}

Exit code: 0 every seed passed, 1 some failed, 2 usage.
`;
