import { argumentsFor } from './drawn-plan.js';
import type { Plan } from './plan.js';
import { shrink } from './shrink.js';
import type { Failed } from './tally.js';

/** What failed, and how to run it again, for people; made smaller first, which takes a while. */
export function told({ seed, failure }: Failed, plan: Plan, shrinks: boolean): string {
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
