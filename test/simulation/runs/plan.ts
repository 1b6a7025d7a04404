import { Chance } from '../world/chance.js';
import { DRAWN_FAULTS, FAULTS, KUBERNETES_FAULTS, LATER_FAULTS, SINGLE_FAULTS } from '../faults/index.js';
import type { Fault } from '../faults/fault.js';
import { PEOPLE } from '../people/index.js';

/** A run as data: generated from a seed, or reduced by shrinking a failure. */
export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  /** Copies of each service. */
  readonly copies: number;
  /** How long people and faults act. */
  readonly minutes: number;
  /** The actors, each with the numbers of the occurrences that happen, or all of them. */
  readonly actors: ReadonlyMap<string, ReadonlySet<number> | undefined>;
  /** Whether to wait several times the longest interval between two tries, even if everything is at rest. */
  readonly patient: boolean;
  /** Whether the nodes are Kubernetes nodes, which Sluice drains. */
  readonly kubernetes: boolean;
}

/** Everything that may act in a run: people and faults. */
export const ACTORS: readonly Fault[] = [...PEOPLE, ...FAULTS, ...KUBERNETES_FAULTS];

/** One in this many seeds is patient. */
const PATIENT = 20;

export function planOf(seed: number): Plan {
  const chance = new Chance(seed, 'plan');
  const most = chance.pick([0, 1, 2, 3, 4, 5, DRAWN_FAULTS.length]);
  const drawn = DRAWN_FAULTS.map((fault) => ({ fault, rank: chance.next() }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ fault }) => fault.name);
  const drawnBy =
    (share: number) =>
    ({ name }: Fault): boolean =>
      new Chance(seed, `plan of ${name}`).flip(share);
  const later = [...LATER_FAULTS.filter(drawnBy(0.3)), ...SINGLE_FAULTS.filter(drawnBy(0.05))].map(({ name }) => name);
  // It has its own random numbers, so that additions leave all other runs unchanged.
  const cluster = new Chance(seed, 'kubernetes plan');
  const kubernetes = cluster.flip(0.5);
  const troubles = kubernetes ? KUBERNETES_FAULTS.filter(() => cluster.flip(0.4)).map(({ name }) => name) : [];
  const people = PEOPLE.filter(({ name }) => name === 'changes' || chance.flip(0.6)).map(({ name }) => name);
  return {
    seed,
    nodes: chance.flip(0.1) ? chance.integer(6, 9) : chance.integer(2, 5),
    copies: chance.pick([1, 2, 2, 3]),
    minutes: chance.pick([4, 6, 6, 8, 15]),
    actors: new Map([...people, ...drawn, ...later, ...troubles].map((name) => [name, undefined])),
    patient: seed % PATIENT === 0,
    kubernetes,
  };
}

/** The arguments that create this plan from its seed again. */
export function argumentsFor(plan: Plan): string {
  const whole = planOf(plan.seed);
  const only = [...plan.actors]
    .map(([name, numbers]) => (numbers === undefined ? name : `${name}:${[...numbers].join('+')}`))
    .join(',');
  const names = [...whole.actors.keys()].join(',');
  return [
    `--seed ${plan.seed}`,
    ...(only === names ? [] : [`--only ${only === '' ? 'nobody' : only}`]),
    ...(plan.kubernetes === whole.kubernetes ? [] : [`--kubernetes ${plan.kubernetes ? 'yes' : 'no'}`]),
    ...(['nodes', 'copies', 'minutes'] as const).flatMap((field) =>
      plan[field] === whole[field] ? [] : [`--${field} ${plan[field]}`],
    ),
  ].join(' ');
}

/** Parses `changes:1+4,lost-answers` as actors. Throws for unknown names and for invalid numbers. */
export function actorsOf(text: string): Plan['actors'] {
  if (text === 'nobody') return new Map();
  return new Map(
    text.split(',').map((part) => {
      const [name = '', numbers] = part.split(':');
      if (!ACTORS.some((actor) => actor.name === name)) throw new Error(`--only: there is no ${name}; see --help`);
      if (numbers !== undefined && !/^\d+(\+\d+)*$/.test(numbers))
        throw new Error(`--only: ${part} does not say numbers, as in ${name}:1+4`);
      return [name, numbers === undefined ? undefined : new Set(numbers.split('+').map(Number))] as const;
    }),
  );
}
