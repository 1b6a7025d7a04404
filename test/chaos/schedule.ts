import { Chance } from '../simulation/world/chance.js';
import { planPublication, planSteering, type Act, type Publication } from './acts.js';
import { FAULTS, type Blow } from './faults/index.js';
import type { Fault } from './faults/fault.js';
import type { Shape } from './shape.js';

/** Something that happens at a time after the beginning of its round. */
export interface TimedEvent<T> {
  readonly atMs: number;
  readonly what: T;
}

export interface Round {
  readonly blows: readonly TimedEvent<Blow>[];
  readonly acts: readonly TimedEvent<Act>[];
}

/** After so long somebody corrects what was just published. */
const CORRECTED_MS = [500, 3_000] as const;

/**
 * All that will be done, from a seed and nothing else. On real machines the moments differ from run to run, what is
 * done does not.
 */
export function scheduleOf(seed: number, rounds: number, shape: Shape): readonly Round[] {
  const chance = new Chance(seed, 'chaos');
  const deck = new Deck(chance);
  let version = 0;
  return Array.from({ length: rounds }, () => {
    const acts = actsOf(chance, shape, () => (version += 1));
    const blows = Array.from({ length: shape.faults }, () => {
      const fault = deck.draw();
      const what = { fault: fault.name, ...fault.plan(chance, shape) };
      return { atMs: chance.whole(0, Math.max(0, shape.roundMs - what.forMs)), what };
    });
    return { blows: inOrder(blows), acts: inOrder(acts) };
  });
}

function actsOf(chance: Chance, shape: Shape, nextVersion: () => number): TimedEvent<Act>[] {
  const acts: TimedEvent<Act>[] = [];
  let last: TimedEvent<Publication> | undefined;
  for (let i = 0; i < shape.publications; i += 1) {
    const corrects: TimedEvent<Publication> | undefined = chance.happens(0.35) ? last : undefined;
    const atMs =
      corrects === undefined
        ? chance.whole(0, Math.floor(shape.roundMs * 0.8))
        : corrects.atMs + chance.whole(...CORRECTED_MS);
    last = { atMs, what: planPublication(chance, shape, nextVersion(), corrects?.what.scope) };
    acts.push(last);
  }
  for (let i = 0; i < shape.steerings; i += 1)
    acts.push({ atMs: chance.whole(1_000, shape.roundMs), what: planSteering(chance) });
  return acts;
}

/** Every fault comes before any comes again. */
class Deck {
  private cards: Fault[] = [];

  constructor(private readonly chance: Chance) {}

  draw(): Fault {
    if (this.cards.length === 0) this.cards = [...FAULTS];
    return this.cards.splice(this.chance.whole(0, this.cards.length - 1), 1)[0] as Fault;
  }
}

const inOrder = <T>(timed: readonly TimedEvent<T>[]): readonly TimedEvent<T>[] =>
  [...timed].sort((a, b) => a.atMs - b.atMs);
