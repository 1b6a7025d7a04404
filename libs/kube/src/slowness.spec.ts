import { Slowness } from './slowness.js';

const reports = (...tookMs: readonly number[]): readonly (string | undefined)[] => {
  const slowness = new Slowness();
  return tookMs.map((ms) => slowness.took(ms, 0));
};

describe('a slow server', () => {
  it('is reported at the first slow answer, and once', () => {
    expect(reports(10, 1_999, 2_000, 5_000, 10, 5_000)).toEqual([
      undefined,
      undefined,
      'slow',
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('counts as fast after a few quick answers in a row, and may become slow again', () => {
    expect(reports(5_000, 10, 10, 1_500, 10, 10, 10, 10, 10, 10, 3_000)).toEqual([
      'slow',
      ...Array.from({ length: 7 }),
      'quick',
      undefined,
      'slow',
    ]);
  });

  it('also counts as fast a minute after the last slow answer if there are no more requests', () => {
    const slowness = new Slowness();
    expect([
      slowness.lapse(0),
      slowness.took(5_000, 10_000),
      slowness.took(1_500, 30_000),
      slowness.took(10, 40_000),
    ]).toEqual([undefined, 'slow', undefined, undefined]);
    expect([slowness.lapse(70_000), slowness.lapse(90_000), slowness.lapse(90_000)]).toEqual([
      90_000,
      'quick',
      undefined,
    ]);
    expect(slowness.took(5_000, 100_000)).toBe('slow');
  });
});
