/** The middle one; of an even number the mean of the two in the middle. NaN for none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Between the two nearest ranks, as most tools do. NaN for none. */
export function percentile(values: readonly number[], percent: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const at = ((sorted.length - 1) * percent) / 100;
  const [low, high] = [sorted[Math.floor(at)] as number, sorted[Math.ceil(at)] as number];
  return low + (high - low) * (at - Math.floor(at));
}

export const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

/** Milliseconds of wall clock that some work takes. */
export async function timed(work: () => Promise<unknown> | unknown): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
