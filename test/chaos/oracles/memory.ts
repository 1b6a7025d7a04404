import type { Oracle } from './oracle.js';

/** Generous: a process that leaks passes it in time, and no other does. */
const boundMiB = (first: number): number => 2 * first + 60;
const LEAST_ROUNDS = 5;

/** No process grows without bound, against what it or the one of its name before it had after the first round. */
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
