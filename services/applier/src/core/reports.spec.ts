import fc from 'fast-check';
import { encodeReport, MAX_REPORT_CHARACTERS } from '#libs/contracts';
import { report } from '#libs/testing';
import { boundedList, boundedReason } from './reports.js';

describe('the reason in a report', () => {
  test('is unchanged if it is short', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 256 }), { maxLength: 100 }), (items) => {
        expect(boundedList(items)).toEqual(items);
      }),
    );
    expect(boundedReason('it is bad')).toBe('it is bad');
  });

  test('is cut if it is long, and says so', () => {
    const items = Array.from({ length: 100_000 }, (_, i) => `/etc/${i}`);
    const shown = boundedList(items);
    expect([shown.length, shown[0], shown.at(-1)]).toEqual([100, '/etc/0', '… and 99901 more']);
    expect(boundedList(['x'.repeat(600)])[0]).toMatch(/^x{255}…$/);
    expect(boundedReason('y'.repeat(5_000))).toMatch(/^y{4095}…$/);
  });

  test('fits into a message at its maximum length', () => {
    const items = Array.from({ length: 300 }, () => '\u0001'.repeat(600)); // six characters each in JSON
    const text = encodeReport(
      report('n', 'h', {
        reason: boundedReason('\u0001'.repeat(9_000)),
        changed: boundedList(items),
        differences: boundedList(items.slice(0, 10)),
      }),
    );
    expect(text.length).toBeLessThan(MAX_REPORT_CHARACTERS);
  });
});
