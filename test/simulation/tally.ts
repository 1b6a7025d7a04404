import type { Outcome } from './run.js';

export interface Failed {
  readonly seed: number;
  readonly failure: string;
}

/** What came of some seeds, in a form that a worker can send. */
export interface Tally {
  readonly seeds: number;
  readonly facts: number;
  readonly failed: readonly Failed[];
  /** How often each fault bit. */
  readonly fired: Readonly<Record<string, number>>;
}
export const NOTHING: Tally = { seeds: 0, facts: 0, failed: [], fired: {} };

export const tallyOf = ({ seed, facts, failure, fired }: Outcome): Tally => ({
  seeds: 1,
  facts,
  failed: failure === undefined ? [] : [{ seed, failure }],
  fired: Object.fromEntries(fired),
});

export function sum(a: Tally, b: Tally): Tally {
  const fired = { ...a.fired };
  for (const [name, count] of Object.entries(b.fired)) fired[name] = (fired[name] ?? 0) + count;
  return { seeds: a.seeds + b.seeds, facts: a.facts + b.facts, failed: [...a.failed, ...b.failed], fired };
}
