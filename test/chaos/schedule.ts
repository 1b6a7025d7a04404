import { Chance } from '../simulation/world/chance.js';
import { planPublication, planSteering, type Act, type Publication } from './acts.js';
import { FAULTS, type ScheduledFault } from './faults/index.js';
import type { Fault } from './faults/fault.js';
import type { Shape } from './shape.js';

/** Something that happens at a given time after the start of its round. */
export interface TimedEvent<T> {
  readonly atMs: number;
  readonly what: T;
}

export interface Round {
  readonly faults: readonly TimedEvent<ScheduledFault>[];
  readonly acts: readonly TimedEvent<Act>[];
}

/** How long after a publication it is corrected. */
const CORRECTED_MS = [500, 3_000] as const;

/**
 * Everything that will be done, derived only from a seed. On real machines, the times differ between runs, but the
 * actions do not.
 */
export function scheduleOf(seed: number, rounds: number, shape: Shape): readonly Round[] {
  const chance = new Chance(seed, 'chaos');
  const deck = new Deck(chance);
  let version = 0;
  return Array.from({ length: rounds }, () => {
    const acts = actsOf(chance, shape, () => (version += 1));
    const faults = Array.from({ length: shape.faults }, () => {
      const fault = deck.draw();
      const what = { fault: fault.name, ...fault.plan(chance, shape) };
      return { atMs: chance.integer(0, Math.max(0, shape.roundMs - what.forMs)), what };
    });
    return { faults: inOrder(faults), acts: inOrder(acts) };
  });
}

function actsOf(chance: Chance, shape: Shape, nextVersion: () => number): TimedEvent<Act>[] {
  const acts: TimedEvent<Act>[] = [];
  let last: TimedEvent<Publication> | undefined;
  for (let i = 0; i < shape.publications; i += 1) {
    const corrects: TimedEvent<Publication> | undefined = chance.flip(0.35) ? last : undefined;
    const atMs =
      corrects === undefined
        ? chance.integer(0, Math.floor(shape.roundMs * 0.8))
        : corrects.atMs + chance.integer(...CORRECTED_MS);
    last = { atMs, what: planPublication(chance, shape, nextVersion(), corrects?.what.scope) };
    acts.push(last);
  }
  for (let i = 0; i < shape.steerings; i += 1)
    acts.push({ atMs: chance.integer(1_000, shape.roundMs), what: planSteering(chance) });
  return acts;
}

/** Deals every fault once before it repeats any. */
class Deck {
  private cards: Fault[] = [];

  constructor(private readonly chance: Chance) {}

  draw(): Fault {
    if (this.cards.length === 0) this.cards = [...FAULTS];
    return this.cards.splice(this.chance.integer(0, this.cards.length - 1), 1)[0] as Fault;
  }
}

const inOrder = <T>(timed: readonly TimedEvent<T>[]): readonly TimedEvent<T>[] =>
  [...timed].sort((a, b) => a.atMs - b.atMs);
