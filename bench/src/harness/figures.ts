/** The median. For an even number of values, the mean of the middle two. NaN if there are none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Interpolates between the two nearest ranks, as most tools do. NaN if there are no values. */
export function percentile(values: readonly number[], percent: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const at = ((sorted.length - 1) * percent) / 100;
  const [low, high] = [sorted[Math.floor(at)] as number, sorted[Math.ceil(at)] as number];
  return low + (high - low) * (at - Math.floor(at));
}

export const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

/** The wall-clock time of some work, in milliseconds. */
export async function timed(work: () => Promise<unknown> | unknown): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
