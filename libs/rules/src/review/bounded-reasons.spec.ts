import type { Reason } from '#libs/contracts';
import { boundReasons } from '../index.js';

const reason = (part: Partial<Reason> = {}): Reason => ({
  fragment: 'File/a',
  field: 'spec.x',
  code: 'c',
  message: 'm',
  nodes: [],
  ...part,
});
const bytes = (reasons: readonly Reason[]): number => Buffer.byteLength(JSON.stringify(reasons));

describe('boundReasons', () => {
  test('keeps a few short ones unchanged', () => {
    const few = [reason(), reason({ field: 'spec.y' })];
    expect(boundReasons(few)).toEqual(few);
  });

  test('keeps the first 200 of many, and says how many more there are', () => {
    const many = Array.from({ length: 300 }, (_, i) => reason({ field: `spec.k${i}` }));
    expect(boundReasons(many)).toEqual([
      ...many.slice(0, 200),
      { fragment: '', field: '', code: 'truncated', message: 'and 100 more reasons', nodes: [] },
    ]);
  });

  test.each(['x', '"', '\u0001', '😀'])('fits texts of a million %j into a message together', (character) => {
    const long = Array.from({ length: 300 }, () =>
      reason({ field: character.repeat(1_000_000), message: character.repeat(1_000_000) }),
    );
    const bound = boundReasons(long);
    expect(bytes(bound)).toBeLessThan(140 * 1024);
    expect(bound.at(-1)).toMatchObject({ code: 'truncated' });
    expect(bound[0]?.field).toMatch(/…$/);
    expect(JSON.stringify(bound)).not.toMatch(/\\ud83d/);
  });
});
