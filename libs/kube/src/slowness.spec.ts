import { Slowness } from './slowness.js';

const told = (...tookMs: readonly number[]): readonly (string | undefined)[] => {
  const slowness = new Slowness();
  return tookMs.map((ms) => slowness.took(ms));
};

describe('that a server is slow', () => {
  it('is told at the first answer that takes long, and once', () => {
    expect(told(10, 1_999, 2_000, 5_000, 10, 5_000)).toEqual([undefined, undefined, 'slow', undefined, undefined, undefined]);
  });

  it('is over when a few answers in a row were quick, and may come again', () => {
    expect(told(5_000, 10, 10, 1_500, 10, 10, 10, 10, 10, 10, 3_000)).toEqual(['slow', ...Array.from({ length: 7 }), 'quick', undefined, 'slow']);
  });
});
