import type { Evidence } from '../evidence.js';

/** One thing that must hold; says what is wrong, in words. */
export interface Oracle {
  readonly name: string;
  judge(evidence: Evidence): readonly string[];
}
