import { Chance } from '../world/chance.js';
import { DRAWN_FAULTS, FAULTS, KUBERNETES_FAULTS, LATER_FAULTS, SINGLE_FAULTS } from '../faults/index.js';
import type { Fault } from '../faults/fault.js';
import { PEOPLE } from '../people/index.js';

/** A run as data: what a seed makes of it, and what a shrunk failure leaves of that. */
export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  /** Of each service. */
  readonly copies: number;
  /** How long people and faults act. */
  readonly minutes: number;
  /** Who acts; with the numbers of what of it happens, or all of it. */
  readonly actors: ReadonlyMap<string, ReadonlySet<number> | undefined>;
  /** Waits out the longest distance between two tries several times, though everything came to rest. */
  readonly patient: boolean;
  /** Nodes are Kubernetes', which drains them. */
  readonly kubernetes: boolean;
}

/** Everything that may act in a run: what people do on any day, and the faults. */
export const ACTORS: readonly Fault[] = [...PEOPLE, ...FAULTS, ...KUBERNETES_FAULTS];

/** One seed in so many is patient. */
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
      new Chance(seed, `plan of ${name}`).happens(share);
  const later = [...LATER_FAULTS.filter(drawnBy(0.3)), ...SINGLE_FAULTS.filter(drawnBy(0.05))].map(({ name }) => name);
  // Its own chance: what is added there leaves all other runs as they were.
  const cluster = new Chance(seed, 'kubernetes plan');
  const kubernetes = cluster.happens(0.5);
  const troubles = kubernetes ? KUBERNETES_FAULTS.filter(() => cluster.happens(0.4)).map(({ name }) => name) : [];
  const people = PEOPLE.filter(({ name }) => name === 'changes' || chance.happens(0.6)).map(({ name }) => name);
  return {
    seed,
    nodes: chance.happens(0.1) ? chance.whole(6, 9) : chance.whole(2, 5),
    copies: chance.pick([1, 2, 2, 3]),
    minutes: chance.pick([4, 6, 6, 8, 15]),
    actors: new Map([...people, ...drawn, ...later, ...troubles].map((name) => [name, undefined])),
    patient: seed % PATIENT === 0,
    kubernetes,
  };
}

/** The arguments that make this plan of its seed again. */
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

/** `changes:1+4,lost-answers` as actors. Throws on a name that nobody has, and on what are no numbers. */
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
