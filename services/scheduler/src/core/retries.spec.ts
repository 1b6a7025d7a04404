import { retryMs } from './retries.js';

const NODES = Array.from({ length: 200 }, (_, i) => `w-${i}.dc1`);
const distances = (tries: number): readonly number[] => NODES.map((node) => retryMs(node, tries));

describe('the pause between two tries', () => {
  it('is one minute, then two, for every node', () => {
    expect([new Set(distances(1)), new Set(distances(2))]).toEqual([new Set([60_000]), new Set([120_000])]);
  });

  it.each([
    [3, 240_000],
    [6, 1_920_000],
    [7, 3_600_000],
    [30, 3_600_000],
  ])('after try %i has that length, and up to a quarter more', (tries, ms) => {
    const all = distances(tries);
    expect(Math.min(...all)).toBeGreaterThanOrEqual(ms);
    expect(Math.max(...all)).toBeLessThan(ms * 1.25);
    // Spread over the whole range.
    expect(new Set(all.map((one) => Math.floor(((one - ms) / ms) * 20))).size).toBe(5);
  });

  it('is the same for the same node and try, and the nodes have another order for the next one', () => {
    const order = (tries: number): readonly string[] =>
      [...NODES].sort((a, b) => retryMs(a, tries) - retryMs(b, tries));
    expect(distances(3)).toEqual(distances(3));
    expect(order(3)).not.toEqual(order(4));
  });
});
