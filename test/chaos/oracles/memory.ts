import type { Oracle } from './oracle.js';

/** Generous: a process that leaks exceeds it eventually, and no other process does. */
const boundMiB = (first: number): number => 2 * first + 60;
const LEAST_ROUNDS = 5;

/**
 * No process grows without bound, compared with its memory after the first round, or that of its predecessor with the
 * same name.
 */
export const memory: Oracle = {
  name: 'memory',
  judge({ memory: rounds }) {
    if (rounds.length < LEAST_ROUNDS) return [];
    const [first, last] = [rounds[0], rounds.at(-1)] as const;
    return [...(last ?? [])].flatMap(([name, mib]) => {
      const before = first?.get(name);
      return before !== undefined && mib > boundMiB(before)
        ? [`${name} has ${mib} MiB after ${rounds.length} rounds, and had ${before} after the first`]
        : [];
    });
  },
};
