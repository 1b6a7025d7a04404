import type { Evidence } from '../evidence.js';

/** One invariant. Returns the violations as text. */
export interface Oracle {
  readonly name: string;
  judge(evidence: Evidence): readonly string[];
}
