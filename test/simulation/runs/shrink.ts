import type { FailedSeed } from './crew.js';
import { ACTORS, argumentsFor, type Plan } from './plan.js';
import { runPlan, type Outcome, type RunOptions } from './run.js';

export interface ShrinkResult {
  readonly plan: Plan;
  readonly outcome: Outcome;
  readonly runs: number;
}

/**
 * Each run takes a fraction of a second. A failure that is still large after this many runs will not get much smaller.
 */
const MOST_RUNS = 400;

/** Reduces a failing plan as long as it fails in the same way: fewer faults, nodes, copies, minutes and occurrences. */
export function shrink(plan: Plan, options: RunOptions = {}): ShrinkResult | undefined {
  const first = runPlan(plan, options);
  if (first.failure === undefined) return undefined;
  const search = new Search(plan, first, options);
  for (let runs = -1; runs !== search.runs && search.runs < MOST_RUNS && search.improved;) {
    runs = search.runs;
    search.improved = false;
    search.dropActors();
    search.takeApart();
    search.lower('minutes', [1, 2, 3, 4, 6, 8, 12]);
    search.lower('nodes', [1, 2, 3, 4, 5]);
    search.lower('copies', [1, 2]);
    search.dropOccurrences();
  }
  return { plan: search.plan, outcome: search.outcome, runs: search.runs };
}

class Search {
  runs = 0;
  improved = true;
  private readonly kind: string;

  constructor(
    public plan: Plan,
    public outcome: Outcome,
    private readonly options: RunOptions,
  ) {
    this.kind = kindOf(outcome.failure);
  }

  dropActors(): void {
    for (const name of [...this.plan.actors.keys()]) {
      this.take({ ...this.plan, actors: new Map([...this.plan.actors].filter(([other]) => other !== name)) });
    }
  }

  /** Replaces a combined fault with one of its parts. */
  takeApart(): void {
    for (const { name, parts = [] } of ACTORS.filter((actor) => this.plan.actors.has(actor.name))) {
      const others = [...this.plan.actors].filter(([other]) => other !== name);
      for (const part of parts)
        if (this.take({ ...this.plan, actors: new Map([...others, [part.name, undefined]]) })) break;
    }
  }

  lower(field: 'nodes' | 'copies' | 'minutes', values: readonly number[]): void {
    for (const value of values) if (value < this.plan[field] && this.take({ ...this.plan, [field]: value })) return;
  }

  /** Drops halves of all occurrences, then quarters, and so on. */
  dropOccurrences(): void {
    let all = this.allOccurrences();
    for (
      let size = Math.ceil(all.length / 2);
      size >= 1 && all.length > 0;
      size = size === 1 ? 0 : Math.ceil(size / 2)
    ) {
      for (let at = 0; at < all.length;) {
        const fewer = [...all.slice(0, at), ...all.slice(at + size)];
        if (this.take({ ...this.plan, actors: this.withOnly(fewer) })) all = fewer;
        else at += size;
      }
    }
  }

  private allOccurrences(): readonly (readonly [string, number])[] {
    return [...this.outcome.occurrences].flatMap(([name, numbers]) => numbers.map((number) => [name, number] as const));
  }

  /** Actors without single occurrences, such as lost answers, are kept or dropped as a whole. */
  private withOnly(kept: readonly (readonly [string, number])[]): Plan['actors'] {
    return new Map(
      [...this.plan.actors.keys()].flatMap((name) => {
        if (!this.outcome.occurrences.has(name)) return [[name, this.plan.actors.get(name)] as const];
        const numbers = kept.filter(([other]) => other === name).map(([, number]) => number);
        return numbers.length === 0 ? [] : [[name, new Set(numbers)] as const];
      }),
    );
  }

  private take(plan: Plan): boolean {
    if (this.runs >= MOST_RUNS) return false;
    this.runs += 1;
    const outcome = runPlan(plan, this.options);
    if (outcome.failure === undefined || kindOf(outcome.failure) !== this.kind) return false;
    this.plan = plan;
    this.outcome = outcome;
    this.improved = true;
    return true;
  }
}

/** The kind of a failure, without names and numbers: the oracle that detected it, or the error. */
export const kindOf = (failure: string | undefined): string =>
  (/^Violation: [^:]*/.exec(failure ?? '')?.[0] ?? (failure ?? '').split('\n')[0] ?? '').replaceAll(/\d+/g, '');

/** The failure, shrunk first, which takes a while, and how to run it again. */
export function describeFailure({ seed, failure }: FailedSeed, plan: Plan, shrinks: boolean): string {
  const smaller = shrinks ? shrink(plan) : undefined;
  const lines = [`seed ${seed} fails: ${failure}`, `  replay: npm run sim -- ${argumentsFor(plan)} --trace`];
  if (smaller !== undefined) {
    lines.push(
      `  the same, smaller: npm run sim -- ${argumentsFor(smaller.plan)} --trace`,
      `  ${smaller.outcome.facts} facts: ${smaller.outcome.failure ?? ''}`,
    );
  }
  return lines.join('\n');
}
