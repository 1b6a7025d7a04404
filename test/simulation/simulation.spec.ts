import { MUTANTS } from './mutants.js';
import { runSeed } from './run.js';

/** Seeds that ever failed; each found something that is mended now. */
const ONCE_FAILED = [9, 11, 21, 26, 28, 52, 54, 64, 1118];
const SEEDS = Number(process.env['SLUICE_SIM_SEEDS'] ?? 150);
const FROM = 10_000;
const GROUPS = 5;

const replay = (seed: number): string => `npm run sim -- --seeds 1 --from ${seed} --trace`;
const failures = (seeds: readonly number[]): readonly string[] =>
  seeds.map((seed) => runSeed(seed)).filter(({ failure }) => failure !== undefined).map(({ seed, failure }) => `${failure ?? ''}\n  replay: ${replay(seed)}`);

test('the same seed gives the same trace, byte for byte', () => {
  const one = runSeed(7, { trace: true });
  const other = runSeed(7, { trace: true });
  expect(one.facts).toBeGreaterThan(100);
  expect(other.trace.join('\n')).toBe(one.trace.join('\n'));
});

test('what once failed holds', () => {
  expect(failures(ONCE_FAILED)).toEqual([]);
});

describe('every promise holds in a world of faults', () => {
  const size = Math.ceil(SEEDS / GROUPS);
  test.each(Array.from({ length: GROUPS }, (_, i) => FROM + i * size))('seeds from %i', (from) => {
    expect(failures(Array.from({ length: size }, (_, i) => from + i))).toEqual([]);
  });
});

describe('each oracle sees the fault planted for it', () => {
  test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))('%s', (_name, mutant) => {
    for (let seed = 1; seed <= 60; seed++) {
      const { failure } = runSeed(seed, { mutant });
      if (failure?.startsWith(`Violation: ${mutant.caughtBy}`) === true) return;
    }
    throw new Error(`60 seeds, and no oracle of ${mutant.caughtBy} saw it`);
  });
});
