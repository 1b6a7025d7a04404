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
  test('few short ones stay as they are', () => {
    const few = [reason(), reason({ field: 'spec.y' })];
    expect(boundReasons(few)).toEqual(few);
  });

  test('of many the first 200 are told, and how many more there are', () => {
    const many = Array.from({ length: 300 }, (_, i) => reason({ field: `spec.k${i}` }));
    expect(boundReasons(many)).toEqual([
      ...many.slice(0, 200),
      { fragment: '', field: '', code: 'truncated', message: 'and 100 more reasons', nodes: [] },
    ]);
  });

  test.each(['x', '"', '\u0001', '😀'])('texts of a million %j fit into a message together', (character) => {
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
